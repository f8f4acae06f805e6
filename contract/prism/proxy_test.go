package prism_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/contract/suite"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/everycall"
)

// A proxy is Prism between the client and a stand-in. It forwards what the document
// allows, in both directions.
type proxy struct {
	*gatewaytest.Server
	*recorder
	url string
}

// TestProxy shares one Prism: it takes seconds to start.
func TestProxy(t *testing.T) {
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	p := proxy{gw, newRecorder(t), start(t, "proxy", gw.URL)}

	t.Run("the suite", p.suite)
	t.Run("every request is forwarded", p.requests)
	t.Run("every response is forwarded", p.responses)
	t.Run("responses under faults", p.faults)
	t.Run("invalid requests are rejected", p.invalidRequests)
	t.Run("amounts keep every digit", p.digits)
}

func (p proxy) client(t *testing.T, opts ...gateway.Option) *gateway.Client {
	return newClient(t, p.url, p.APIKey, p.recorder, opts...)
}

// suite runs every case. Prism rejects the requests of the cases that send invalid
// ones, and forwards the others.
func (p proxy) suite(t *testing.T) {
	target := suite.Target{
		BaseURL: p.url, APIKey: p.APIKey, Transport: p.recorder,
		WithdrawalID: everycall.KnownTo(p.Server).WithdrawalID, AllowWrites: true, Readable: true,
	}
	for _, c := range suite.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			arrived := len(p.Requests())
			err := c.Check(t.Context(), target)
			_, errors := p.take()
			if c.Invalid {
				assert.Error(t, err)
				assert.NotEmpty(t, errors)
				assert.Len(t, p.Requests(), arrived)
				return
			}
			assert.NoError(t, err)
			assert.Empty(t, errors)
		})
	}
}

// requests sends every variation. Most ask for records that do not exist; the errors
// are forwarded too.
func (p proxy) requests(t *testing.T) {
	for name, opts := range options() {
		t.Run(name, func(t *testing.T) {
			client := p.client(t, opts...)
			for _, c := range everycall.Variations() {
				arrived := len(p.Requests())
				err := c.Send(t.Context(), client)
				_, errors := p.take()
				require.Empty(t, errors, "%s: %v", c.Name, err)
				require.Len(t, p.Requests(), arrived+1, "%s: %v", c.Name, err)
			}
		})
	}
}

func (p proxy) responses(t *testing.T) {
	for _, shape := range gatewaytest.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			p.SetShape(shape)
			client := p.client(t)
			for _, c := range everycall.Accepted(p.Server) {
				require.NoError(t, c.Send(t.Context(), client), c.Name)
			}
			_, errors := p.take()
			assert.Empty(t, errors)
		})
	}
}

func (p proxy) faults(t *testing.T) {
	for _, tt := range []struct {
		name      string
		op        gatewaytest.Operation
		fault     gatewaytest.Fault
		forwarded bool
	}{
		{"an error", gatewaytest.AnyOperation, gatewaytest.FaultRefuse(400, "no"), true},
		{"an error with a Retry-After", gatewaytest.AnyOperation, gatewaytest.FaultRefuse(503, "later").RetryAfter("120"), true},
		{"unknown members", gatewaytest.AnyOperation, gatewaytest.FaultDriftFields(), true},
		{"a response byte by byte", gatewaytest.AnyOperation, gatewaytest.FaultSlowBody(time.Nanosecond), true},
		{"an unknown status", gatewaytest.OpWithdrawal, gatewaytest.FaultDriftStatus(), false},
		{"a listing with a meta that is not empty", gatewaytest.OpCoinNetworks, gatewaytest.FaultHugeBody(1 << 12), false},
		{"a listing that is an error", gatewaytest.OpCoinNetworks, gatewaytest.FaultRefuse(200, "no"), false},
		{"no JSON", gatewaytest.AnyOperation, gatewaytest.FaultBadGateway(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer p.ClearFaults()
			p.InjectFault(tt.op, -1, tt.fault)
			client := p.client(t)
			p.take()
			for _, c := range everycall.Accepted(p.Server) {
				if tt.op != gatewaytest.Operation(c.Operation) && tt.op != gatewaytest.AnyOperation {
					continue
				}
				err := c.Send(t.Context(), client)
				_, errors := p.take()
				assert.Equal(t, tt.forwarded, len(errors) == 0, "%s: %v: %v", c.Name, errors, err)
			}
		})
	}
}

func (p proxy) invalidRequests(t *testing.T) {
	for _, m := range invalidRequests() {
		t.Run(m.name, func(t *testing.T) {
			arrived := len(p.Requests())
			status, body := m.send(t, p.url, p.recorder)
			assert.Equal(t, m.status, status)
			assert.Contains(t, body, m.reason)
			assert.Len(t, p.Requests(), arrived, "it was forwarded")
		})
	}
}

// digits sends more digits than a float64 has through a program that is written in
// JavaScript. Amounts in strings keep them, which is why the format of the sample is
// the default of the client. Numbers lose digits; that is not asserted, because it is
// a property of Prism.
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
