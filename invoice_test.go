package gateway_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// createdInvoice is the invoice that a result is read as.
func createdInvoice(t testing.TB, result string) *gateway.Invoice {
	t.Helper()
	got, err := cannedClient(t, 200, enveloped(result)).CreateInvoice(t.Context(), order("A-17"))
	require.NoError(t, err)
	return got
}

// The result of a created invoice is undocumented: it is returned byte for byte, and
// not interpreted.
// I-124
func TestClient_CreateInvoice_raw(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, result string }{
		{"a record", invoiceJSON},
		{"a record in an odd order, with spaces and escapes", `{ "b" : 1.50 , "a":"\u00e9\/" , "c":[ ] }`},
		{"an array of records", `[{"id":"inv-1"}]`},
		{"a text", `"https://pay.example/inv-1"`},
		{"a number, with its digits", `10.500000000000000000001`},
		{"a boolean", `true`},
		{"an empty record", `{}`},
		{"an empty array with the documented text of a success", `[]`},
		{"much", `{"a":"` + strings.Repeat("x", 100_000) + `"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := createdInvoice(t, tt.result)
			assert.Equal(t, tt.result, string(got.Raw))
			assert.Equal(t, "A-17", got.OrderID)
		})
	}
}

// After a 2xx response that is not an envelope, or is an error envelope, the outcome is
// unknown.
// I-129
func TestClient_CreateInvoice_unreadable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body string }{
		{"row R1: no body", ""},
		{"row R3: no result", "{}"},
		{"row R4: half a body", `{"message":"Operation was successful.","result":{"inv`},
		{"row R3: null for a result", enveloped("null")},
		{"row R23: a page", "<html></html>"},
		{"an empty result, and another message", `{"message":"Order exists","result":{}}`},
		{"a result that is no record, and another message", `{"message":"Order exists","result":false}`},
		{"an error envelope", refused("Price is too small")},
		{"an error envelope without a message", `{"result":[]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, tt.body))
			got, err := newClient(t, w.URL).CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			var unknown *gateway.OutcomeUnknownError
			require.ErrorAs(t, err, &unknown)
			assert.Equal(t, "A-17", unknown.OrderID)
			assert.Equal(t, 200, unknown.StatusCode)
			assert.Equal(t, tt.body, string(unknown.Body))
			assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
			assert.False(t, gateway.SafeToRetry(err))
			assert.Len(t, w.Requests(), 1)
		})
	}
}

// I-125
func TestInvoice_Text(t *testing.T) {
	t.Parallel()
	const result = `{"invoiceId":"inv-1","total":10.50,"paid":false,"note":null,"empty":"","esc":"a\u00e9\n",` +
		`"deep":{"address":"deep","id":"low","list":[{"memo":"m-1","id":"lower"},{"memo":"m-2"}]},` +
		`"payment":{"address":"other","id":"low-2"},"id":{"id":"inner"},"big":123456789012345678901234567890}`
	for _, tt := range []struct {
		name  string
		names []string
		want  string
		found bool
	}{
		{"at the top", []string{"invoiceId"}, "inv-1", true},
		{"the first of the names that is there", []string{"nope", "address", "invoiceId"}, "deep", true},
		{"the first of the names, not the nearest", []string{"memo", "invoiceId"}, "m-1", true},
		{"a number, by its digits", []string{"total"}, "10.50", true},
		{"a number beyond every integer", []string{"big"}, "123456789012345678901234567890", true},
		{"in a record", []string{"address"}, "deep", true},
		{"in a record in an array", []string{"memo"}, "m-1", true},
		{"nearest to the top", []string{"id"}, "low", true},
		{"an empty text is a text", []string{"empty"}, "", true},
		{"escapes are resolved", []string{"esc"}, "aé\n", true},
		{"a boolean is no text", []string{"paid"}, "", false},
		{"null is no text", []string{"note"}, "", false},
		{"a record is no text", []string{"deep"}, "", false},
		{"an array is no text", []string{"list"}, "", false},
		{"another case is another name", []string{"InvoiceID", "INVOICEID"}, "", false},
		{"a name that is not there", []string{"nope"}, "", false},
		{"an empty name", []string{""}, "", false},
		{"no names", nil, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, found := createdInvoice(t, result).Text(tt.names...)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.found, found)
		})
	}
}

// I-125
func TestInvoice_Text_otherShapes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, result, want string
		found              bool
	}{
		{"an array of a record", `[{"id":"inv-1"}]`, "inv-1", true},
		{"an array of arrays", `[[],[{"id":"inv-1"}]]`, "inv-1", true},
		{"a text", `"id"`, "", false},
		{"an array of texts", `["id","inv-1"]`, "", false},
		{"an empty record", `{}`, "", false},
		{"a name in escapes", `{"\u0069d":"inv-1"}`, "inv-1", true},
		{"an empty name", `{"":"x","id":"inv-1"}`, "inv-1", true},
		{"the nearest to the top comes last", `{"more":{"id":"other"},"id":"inv-1"}`, "inv-1", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, found := createdInvoice(t, tt.result).Text("id")
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.found, found)
		})
	}
	t.Run("an invoice of zero fields", func(t *testing.T) {
		t.Parallel()
		_, found := (&gateway.Invoice{}).Text("id")
		assert.False(t, found)
	})
}

// I-124
func TestInvoice_Decode(t *testing.T) {
	t.Parallel()
	type result struct {
		InvoiceID string      `json:"invoiceId"`
		Total     json.Number `json:"-"`
	}
	t.Run("into the caller's struct", func(t *testing.T) {
		t.Parallel()
		var into result
		require.NoError(t, createdInvoice(t, `{"invoiceId":"inv-1","more":1}`).Decode(&into))
		assert.Equal(t, "inv-1", into.InvoiceID)
	})
	t.Run("names match exactly", func(t *testing.T) {
		t.Parallel()
		var into result
		require.NoError(t, createdInvoice(t, `{"INVOICEID":"inv-1"}`).Decode(&into))
		assert.Empty(t, into.InvoiceID)
	})
	t.Run("into a map", func(t *testing.T) {
		t.Parallel()
		var into map[string]any
		require.NoError(t, createdInvoice(t, invoiceJSON).Decode(&into))
		assert.Equal(t, map[string]any{"invoiceId": "inv-1", "address": "TXYZ"}, into)
	})
	for _, tt := range []struct {
		name    string
		invoice *gateway.Invoice
		into    any
	}{
		{"of another type", createdInvoice(t, `{"invoiceId":1}`), &result{}},
		{"into what is no pointer", createdInvoice(t, invoiceJSON), result{}},
		{"into nil", createdInvoice(t, invoiceJSON), nil},
		{"of nothing", &gateway.Invoice{OrderID: "A-17"}, &result{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.invoice.Decode(tt.into)
			require.Error(t, err)
			assert.Contains(t, err.Error(), `gateway: invoice for order "A-17": `)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// An invoice prints and encodes its result as JSON, not as bytes.
func TestInvoice_encodes(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(createdInvoice(t, invoiceJSON))
	require.NoError(t, err)
	assert.JSONEq(t, `{"OrderID":"A-17","Raw":`+invoiceJSON+`}`, string(encoded))
}

// A prepared connection has carried nothing, and then carries the invoice: through the
// client's own transport, an http.Transport, and one of InvoiceTransport. Observers are told.
func TestClient_PrepareInvoice(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]gateway.Option{
		"the client's own transport": nil,
		"an http.Client without one": {gateway.WithHTTPClient(&http.Client{})},
		"an http.Transport":          {gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{}})},
		"InvoiceTransport":           {gateway.WithHTTPClient(&http.Client{Transport: gateway.InvoiceTransport(&http.Transport{})})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened, made atomic.Int32
			server := httptest.NewUnstartedServer(respond(200, enveloped(invoiceJSON)))
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			server.Start()
			t.Cleanup(server.Close)
			c := newClient(t, server.URL, append(opts, gateway.WithObserver(countedCalls{calls: &made}))...)
			require.NoError(t, c.PrepareInvoice(t.Context()))
			assert.EqualValues(t, 1, made.Load())
			for n := range int32(2) {
				_, err := c.CreateInvoice(t.Context(), order(fmt.Sprint("A-", n)))
				require.NoError(t, err)
				assert.Equal(t, n+1, opened.Load())
			}
			assert.EqualValues(t, 3, made.Load())
		})
	}
}

// countedCalls is an observer that counts calls and attempts, of which each call has one.
type countedCalls struct {
	gateway.NopObserver
	calls *atomic.Int32
}

func (c countedCalls) Start(ctx context.Context, _ gateway.Call) context.Context {
	c.calls.Add(1)
	return ctx
}

// An error of PrepareInvoice states what is wrong, and that nothing was sent.
func TestClient_PrepareInvoice_errors(t *testing.T) {
	t.Parallel()
	dial := func(err error) gateway.Option {
		return gateway.WithHTTPClient(&http.Client{Transport: gateway.InvoiceTransport(&http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, cmp.Or(ctx.Err(), err) },
		})})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	refused := &net.OpError{Op: "dial", Err: fmt.Errorf("%w %s", syscall.ECONNREFUSED, canary)}
	for _, tt := range []struct {
		name   string
		ctx    context.Context
		client *gateway.Client
		text   string
		is     error
		safe   bool
	}{
		{"a nil client", t.Context(), nil, "client: was not made by New", gateway.ErrInvalidArgument, false},
		{"a zero client", t.Context(), &gateway.Client{}, "client: was not made by New", gateway.ErrInvalidArgument, false},
		{"a nil context", nil, newClient(t, "https://gateway.test"), "ctx: must not be nil", gateway.ErrInvalidArgument, false},
		{
			"a RoundTripper of the caller's", t.Context(), newClient(t, inMemoryURL, gateway.WithHTTPClient(&http.Client{Transport: memory{}})),
			"WithHTTPClient: has a RoundTripper that opens no connection before a request", gateway.ErrInvalidArgument, false,
		},
		{"a host that refuses", t.Context(), newClient(t, "https://gateway.test", dial(refused)), "dial: connection refused [REDACTED]", syscall.ECONNREFUSED, true},
		{"a context that has ended", ended, newClient(t, "https://gateway.test", dial(nil)), "context canceled", context.Canceled, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.client.PrepareInvoice(tt.ctx)
			require.ErrorContains(t, err, "gateway: prepare_invoice: ")
			assert.ErrorContains(t, err, tt.text)
			assert.ErrorIs(t, err, tt.is)
			assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
			assert.Equal(t, tt.safe, gateway.SafeToRetry(err))
			assertInvariants(t, nil, err)
		})
	}
}
