package sqlguard

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cryptogw/gateway"
	"github.com/shopspring/decimal"
)

// A service responds to the invoices of a test. It counts them.
type service struct {
	sent    int
	respond func(*http.Request) (*http.Response, error) // nil: a success
}

func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.respond != nil {
		return s.respond(req)
	}
	return s.status(req, http.StatusCreated)
}

func (s *service) status(req *http.Request, status int) (*http.Response, error) {
	s.sent++
	_, _ = io.Copy(io.Discard, req.Body)
	_ = req.Body.Close()
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(`{"message":"Operation was successful.","result":{"id":1},"meta":{}}`)),
	}, nil
}

// client returns a client of the service.
func (s *service) client(t *testing.T, guard gateway.OrderGuard) *gateway.Client {
	t.Helper()
	c, err := gateway.New("https://gateway.example", "a-key-for-tests", gateway.WithOrderGuard(guard), gateway.WithHTTPClient(&http.Client{Transport: s}))
	check(t, err)
	return c
}

var invoice = gateway.InvoiceRequest{OrderID: order, Price: decimal.New(1050, -2), Amount: decimal.New(1050, -2)}

// Three merchants have an order of the same name. Each is created, once.
func TestWithMerchants(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		s := &service{}
		clients := []*gateway.Client{s.client(t, w.guard(t, WithMerchants())), s.client(t, w.guard(t, WithMerchants()))}
		calls := map[string][]gateway.CallOption{
			"the client's own": nil,
			"by name":          {gateway.WithMerchant("shop-b")},
			"by key":           {gateway.WithAPIKey("the-key-of-shop-c"), gateway.WithMerchant("shop-c")},
		}
		for name, opts := range calls {
			if _, err := clients[0].CreateInvoice(t.Context(), invoice, opts...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, opts := range calls {
			for _, c := range clients {
				if again, err := c.CreateInvoice(t.Context(), invoice, opts...); err != nil || !again.Replayed {
					t.Errorf("%s: %+v, %v", name, again, err)
				}
			}
		}
		if s.sent != len(calls) {
			t.Errorf("%d were sent", s.sent)
		}
	})
}

// What is unknown of a merchant is listed and resolved under its name, and holds back
// the order of no other.
func TestWithMerchants_unknown(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t, WithMerchants())
		s := &service{}
		s.respond = func(req *http.Request) (*http.Response, error) { return s.status(req, http.StatusInternalServerError) }
		client, shopB := s.client(t, g), gateway.WithMerchant("shop-b")
		if _, err := client.CreateInvoice(t.Context(), invoice, shopB); gateway.OutcomeOf(err) != gateway.OutcomeUnknown {
			t.Fatal(err)
		}
		s.respond = nil
		plain := w.guard(t) // lists the orders of every merchant
		for _, lister := range []*Guard{g, plain} {
			pending, err := lister.Pending(t.Context(), PendingQuery{})
			if err != nil || len(pending) != 1 || pending[0].Merchant != "shop-b" || pending[0].ID != order {
				t.Fatalf("%+v, %v", pending, err)
			}
		}
		if _, err := client.CreateInvoice(t.Context(), invoice); err != nil {
			t.Error(err)
		}
		_, err := client.CreateInvoice(t.Context(), invoice, shopB)
		if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); !ok || !unknown.Replayed || !strings.Contains(err.Error(), "outcome unknown") {
			t.Error(err)
		}
		listed, err := g.Order(t.Context(), "shop-b", order)
		if err != nil || listed.State != StateUnknown {
			t.Fatalf("%+v, %v", listed, err)
		}
		if err := plain.Resolve(t.Context(), listed, Resolution{By: "anna"}); err != nil {
			t.Error(err)
		}
		for merchant, want := range map[string]State{"": StateCreated, "shop-b": StateFree, "shop-c": StateFree} {
			if o, err := g.Order(t.Context(), merchant, order); err != nil || o.State != want || o.Merchant != merchant {
				t.Errorf("%q: %+v, %v", merchant, o, err)
			}
		}
		if _, err := client.CreateInvoice(t.Context(), invoice, shopB); err != nil {
			t.Error(err)
		}
	})
}

// Without the option a merchant is a mistake in the settings, which no order of
// another merchant decides.
func TestWithMerchants_missing(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		s := &service{}
		client := s.client(t, g)
		for _, own := range []State{StateFree, StateInFlight} {
			if own == StateInFlight {
				check(t, g.begins(t.Context(), order))
			}
			_, err := client.CreateInvoice(t.Context(), invoice, gateway.WithMerchant("shop-b"))
			if gateway.OutcomeOf(err) != gateway.OutcomeUnknown || !strings.Contains(err.Error(), "WithMerchants") || errors.Is(err, gateway.ErrOrderInFlight) {
				t.Error(err)
			}
			g.wantState(t, own)
		}
		if s.sent > 0 || len(g.tokens) != 1 {
			t.Errorf("%d were sent, held: %v", s.sent, g.tokens)
		}
		wantError(t, recorded(g.End(t.Context(), gateway.Order{Merchant: "shop-b", Request: invoice}, gateway.OrderRecord{})), gateway.ErrInvalidArgument)
	})
}
