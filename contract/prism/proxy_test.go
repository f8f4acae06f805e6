package prism_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/contract/internal/surface"
	"github.com/cryptogw/gateway/contract/suite"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A proxy is Prism between the client and a stand-in. It lets pass what the
// document allows, both ways.
type proxy struct {
	*gatewaytest.Server
	*witness
	url string
}

// TestProxy shares one Prism: it takes seconds to start.
func TestProxy(t *testing.T) {
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	p := proxy{gw, newWitness(t), start(t, "proxy", gw.URL)}

	t.Run("the suite", p.suite)
	t.Run("every request passes", p.requests)
	t.Run("every response passes", p.responses)
	t.Run("responses in trouble", p.troubles)
	t.Run("requests that are refused", p.mistakes)
	t.Run("amounts pass digit for digit", p.digits)
}

func (p proxy) client(t *testing.T, opts ...gateway.Option) *gateway.Client {
	return newClient(t, p.url, p.APIKey, p.witness, opts...)
}

// suite runs the cases of which the requests reach the stand-in. The others are
// refused on their way there.
func (p proxy) suite(t *testing.T) {
	target := suite.Target{
		BaseURL: p.url, APIKey: p.APIKey, Transport: p.witness,
		WithdrawalID: surface.KnownTo(p.Server).Withdrawal, AllowWrites: true, Readable: true,
	}
	for _, c := range suite.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			arrived := len(p.Requests())
			err := c.Check(t.Context(), target)
			_, refusals := p.took()
			if c.Invalid {
				assert.Error(t, err)
				assert.NotEmpty(t, refusals)
				assert.Len(t, p.Requests(), arrived)
				return
			}
			assert.NoError(t, err)
			assert.Empty(t, refusals)
		})
	}
}

// requests makes every request there is. Most ask for what is not there, and the
// errors pass too.
func (p proxy) requests(t *testing.T) {
	for name, opts := range options() {
		t.Run(name, func(t *testing.T) {
			client := p.client(t, opts...)
			for _, u := range surface.Uses() {
				arrived := len(p.Requests())
				err := u.Call(t.Context(), client)
				_, refusals := p.took()
				require.Empty(t, refusals, "%s: %v", u.Method, err)
				require.Len(t, p.Requests(), arrived+1, "%s: %v", u.Method, err)
			}
		})
	}
}

func (p proxy) responses(t *testing.T) {
	for _, shape := range surface.Shapes(t, "../../gatewaytest") {
		t.Run(shape, func(t *testing.T) {
			p.SetShape(gatewaytest.Shape(shape))
			client := p.client(t)
			for _, q := range surface.Questions() {
				require.NoError(t, q.Call(t.Context(), client, surface.KnownTo(p.Server)), q.Name)
			}
			_, refusals := p.took()
			assert.Empty(t, refusals)
		})
	}
}

func (p proxy) troubles(t *testing.T) {
	for _, tt := range []struct {
		name    string
		op      gatewaytest.Operation
		trouble gatewaytest.Fault
		passes  bool
	}{
		{"an error", gatewaytest.AnyOperation, gatewaytest.Refuse(400, "no"), true},
		{"an error that asks to wait", gatewaytest.AnyOperation, gatewaytest.Refuse(503, "later").RetryAfter("120"), true},
		{"unknown members", gatewaytest.AnyOperation, gatewaytest.DriftFields(), true},
		{"an answer byte by byte", gatewaytest.AnyOperation, gatewaytest.SlowBody(time.Nanosecond), true},
		{"an unknown status", gatewaytest.OpWithdrawal, gatewaytest.DriftStatus(), false},
		{"a listing with a full meta", gatewaytest.OpCoinNetworks, gatewaytest.HugeBody(1 << 12), false},
		{"a listing that is an error", gatewaytest.OpCoinNetworks, gatewaytest.Refuse(200, "no"), false},
		{"no JSON", gatewaytest.AnyOperation, gatewaytest.BadGateway(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer p.ClearFaults()
			p.InjectFault(tt.op, -1, tt.trouble)
			client := p.client(t)
			p.took()
			for _, q := range surface.Questions() {
				if tt.op != q.Op && tt.op != gatewaytest.AnyOperation {
					continue
				}
				err := q.Call(t.Context(), client, surface.KnownTo(p.Server))
				_, refusals := p.took()
				assert.Equal(t, tt.passes, len(refusals) == 0, "%s: %v: %v", q.Name, refusals, err)
			}
		})
	}
}

func (p proxy) mistakes(t *testing.T) {
	for _, m := range mistakes() {
		t.Run(m.name, func(t *testing.T) {
			arrived := len(p.Requests())
			status, body := m.make(t, p.url, p.witness)
			assert.Equal(t, m.status, status)
			assert.Contains(t, body, m.reason)
			assert.Len(t, p.Requests(), arrived, "it was passed on")
		})
	}
}

// digits sends more digits than a float64 has through a program that is written
// in JavaScript. Amounts in strings keep them, which is why the client's default
// is the sample's format. Numbers lose them on the way: that is not shown here,
// for it is Prism's to change.
func (p proxy) digits(t *testing.T) {
	price := strings.Repeat("1234567890", 3) + "." + strings.Repeat("0987654321", 3)
	_, err := p.client(t).CreateInvoice(t.Context(), gateway.InvoiceRequest{
		OrderID: "digits", Price: decimal.RequireFromString(price), Amount: decimal.RequireFromString("0.000000000000000000000000000001"),
	})
	require.NoError(t, err)
	created := p.InvoicesFor("digits")
	require.Len(t, created, 1)
	assert.Equal(t, price, created[0].Price)
	assert.Equal(t, "0.000000000000000000000000000001", created[0].Amount)
}
