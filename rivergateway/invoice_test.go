package rivergateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/sqlguard"
)

// The states of an order, and its outcomes.
const (
	free, inFlight, created, unknown = gateway.OrderFree, gateway.OrderInFlight, gateway.OrderCreated, gateway.OrderUnknown
	isCreated, isUnknown             = gateway.OutcomeSucceeded, gateway.OutcomeUnknown
)

// OnInvoice gets the result that an earlier run has stored, unless the guard has a newer outcome.
func TestInvoice(t *testing.T) {
	succeeds := func(s *shop) { s.gw.SetResult(gatewaytest.OpCreateInvoice, rawInvoice) }
	notRecorded := all((*shop).forget, elsewhere("A-17", isUnknown))
	otherPrice := all(elsewhere("A-17", isCreated), change(`{"price": "99.50"}`))
	moved := gatewaytest.FaultRedirect(308, "https://moved.example/gateway/api/invoice/create")
	noFile := with(gateway.WithAPIKeySource(gateway.APIKeyFile("/no/file")))
	aged := func(s *shop) {
		s.exec(`UPDATE river_job SET metadata = replace(metadata::text, '"askedAt": "20', '"askedAt": "21')::jsonb`)
	}
	repeatable := all(inject(lost), with(gateway.WithIdempotentOrders()))
	rows := map[string]row{
		"created":                              {nil, all(), completed, completed, "succeeded", created, 1},
		"unknown":                              {nil, inject(lost), cancelled, cancelled, "unknown", unknown, 1},
		"unknown, where it may be repeated":    {nil, repeatable, failed, cancelled, "unknown", unknown, 1},
		"rejected":                             {nil, refused(422), cancelled, cancelled, "rejected", free, 1},
		"rejected for now":                     {nil, refused(429), failed, cancelled, "rejected", free, 1},
		"a moved base URL":                     {nil, inject(moved), failed, cancelled, "rejected", free, 1},
		"a key that cannot be read":            {nil, all(func(s *shop) { s.cfg.APIKey = nil }, noFile), failed, cancelled, "not sent", free, 0},
		"not sent":                             {nil, func(s *shop) { s.cfg.BaseURL = "http://127.0.0.1:1" }, failed, cancelled, "not sent", free, 0},
		"after Shutdown":                       {nil, func(s *shop) { s.isShutDown = true }, snoozed, snoozed, "", free, 0},
		"in flight elsewhere":                  {nil, elsewhere("A-17"), snoozed, snoozed, "", inFlight, 0},
		"created elsewhere":                    {nil, elsewhere("A-17", isCreated), completed, completed, "succeeded again", created, 0},
		"created elsewhere, for another price": {nil, otherPrice, cancelled, cancelled, "conflict", created, 0},
		"unknown from before":                  {nil, elsewhere("A-17", isUnknown), cancelled, cancelled, "unknown", unknown, 0},
		"the guard's database fails":           {nil, (*shop).closeGuard, failed, cancelled, "unknown", free, 0},
		"no options for the merchant":          {nil, (*shop).hasNoOptions, failed, cancelled, "not sent", free, 0},
		"unknown from before, and unreadable":  {nil, all(elsewhere("A-17", isUnknown), change(`{"price": "?"}`)), failed, cancelled, "unknown", unknown, 0},

		"the response to the commit is lost": {nil, commit{arrives: true}.isLost, completed, completed, "succeeded", created, 1},
		"that to the commit of a rejection":  {nil, all(refused(422), commit{arrives: true}.isLost), cancelled, "", "rejected", free, 1},
		"the commit is lost":                 {nil, commit{arrives: false}.isLost, failed, discarded, "", created, 1},
		"taken over by another run":          {nil, overtaken(`attempted_at = attempted_at + interval '1 second'`), failed, discarded, "", created, 1},
		"taken over by a run that has ended": {nil, overtaken(`state = 'cancelled', finalized_at = now()`), cancelled, cancelled, "", created, 1},

		"succeeded":                            {succeeds, all(), completed, completed, "succeeded again", created, 1},
		"succeeded, and the guard has lost it": {succeeds, (*shop).forget, completed, completed, "succeeded", free, 1},
		"succeeded, and could not be recorded": {succeeds, notRecorded, completed, completed, "succeeded", unknown, 1},
		"refused":                              {refused(422), all(), cancelled, cancelled, "rejected", free, 1},
		"refused, then created elsewhere":      {refused(422), elsewhere("A-17", isCreated), completed, completed, "succeeded again", created, 1},
		"refused, then unknown elsewhere":      {refused(422), elsewhere("A-17", isUnknown), cancelled, cancelled, "unknown", unknown, 1},
		"refused, and in flight elsewhere":     {refused(422), elsewhere("A-17"), snoozed, snoozed, "", inFlight, 1},
		"refused, and the guard fails":         {refused(422), (*shop).closeGuard, retryable, discarded, "", free, 1},
		"unknown, not told":                    {page(502), all(), cancelled, cancelled, "unknown", unknown, 1},
		"unknown, and the guard has lost it":   {page(502), (*shop).forget, cancelled, cancelled, "unknown", free, 1},
		"unknown, and an invoice is found":     {page(502), found(true), completed, completed, "succeeded again", created, 1},
		"unknown, and none was found before":   {page(502), all(found(false), aged), cancelled, cancelled, "unknown", free, 1},
		"unknown, and none is found":           {page(502), found(false), completed, completed, "succeeded", created, 2},
	}
	for _, status := range []int{401, 402, 403, 404, 405, 407} {
		rows[fmt.Sprintf("the set-up is refused, %d", status)] = row{nil, refused(status), failed, cancelled, "rejected", free, 1}
	}
	runAll(t, rows, func(s *shop, o InsertOptions) *rivertype.JobRow { return s.insert("A-17", o) })
}

var lost = gatewaytest.FaultCommitThenDrop()

// Steps that prepare a run.
func all(steps ...func(*shop)) func(*shop) {
	return func(s *shop) {
		for _, step := range steps {
			step(s)
		}
	}
}

func with(opts ...gateway.Option) func(*shop) {
	return func(s *shop) { s.cfg.Options = append(s.cfg.Options, opts...) }
}

func inject(f gatewaytest.Fault) func(*shop) {
	return func(s *shop) { s.gw.InjectFault(gatewaytest.AnyOperation, 1, f) }
}

func refused(status int) func(*shop) { return inject(gatewaytest.FaultRefuse(status, "No")) }

func page(status int) func(*shop) { return inject(gatewaytest.FaultPage(status)) }

// change changes the arguments of the jobs.
func change(args string) func(*shop) {
	return func(s *shop) { s.exec(`UPDATE river_job SET args = args || '` + args + `'`) }
}

// hasNoOptions asks for the options of a merchant in vain, with an error that PostgreSQL cannot store.
func (s *shop) hasNoOptions() {
	change(`{"merchant": "shop-b"}`)(s)
	s.cfg.Merchant = func(context.Context, string) ([]gateway.CallOption, error) { return nil, errors.New("a\x00b") }
}

// closeGuard gives the jobs a guard without a database.
func (s *shop) closeGuard() {
	closed := stdlib.OpenDBFromPool(pool)
	_ = closed.Close()
	s.cfg.Guard = must(sqlguard.New(closed))
}

// elsewhere has another process begin an order, and end it if there is an outcome.
func elsewhere(id string, outcomes ...gateway.Outcome) func(*shop) {
	return func(s *shop) {
		o := gateway.Order{Gateway: s.gw.URL, Request: request(id)}
		o.Attempt = must(s.guard.Begin(s.t.Context(), o)).Attempt
		for _, outcome := range outcomes {
			must(s.guard.End(s.t.Context(), o, gateway.OrderRecord{Outcome: outcome, Request: o.Request, Invoice: []byte(`{}`)}))
		}
	}
}

// found has a person resolve the order, as if it was read a second later.
func found(exists bool) func(*shop) {
	return func(s *shop) {
		order := must(s.guard.Order(s.t.Context(), "", "A-17"))
		order.ReadAt, order.GuardReadAt = order.ReadAt.Add(time.Second), order.GuardReadAt.Add(time.Second)
		must(0, s.guard.Resolve(s.t.Context(), order, gateway.Finding{Exists: exists, By: "anna@shop.example", Margin: time.Microsecond}))
	}
}

func (s *shop) forget() { s.exec(`DELETE FROM gateway_orders`) }

// overtaken has another run of the job begin, because the engine took this one's process for dead.
func overtaken(text string) func(*shop) {
	return with(gateway.WithObserver(gateway.Observer{End: func(context.Context, gateway.Call) {
		must(pool.Exec(context.Background(), `UPDATE river_job SET `+text))
	}}))
}

// A commit closes its connection, before or after PostgreSQL has it.
type commit struct{ arrives bool }

func (c commit) isLost(s *shop) {
	cfg := pool.Config()
	cfg.ConnConfig.Tracer = c
	s.cfg.Pool = must(pgxpool.NewWithConfig(context.Background(), cfg))
	s.t.Cleanup(s.cfg.Pool.Close)
}

func (c commit) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if net := conn.PgConn().Conn(); data.SQL == "commit" {
		if c.arrives {
			must(net.Write([]byte("Q\x00\x00\x00\x0bcommit\x00")))
			must(net.Read(make([]byte, 1)))
		}
		_ = net.Close()
	}
	return ctx
}

func (commit) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// An order has one job, unless that was cancelled or the merchant's transaction rolled back. The job sends its own
// request, with every digit.
func TestInsertInvoiceTx(t *testing.T) {
	s := newShop(t)
	price, amount, one := "12345678901234567890123456789012.10", "0.000000000000000000000000000100", decimal.NewFromInt(1)
	coin := gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.RequireFromString(price), BaseCurrency: "usd",
		Amount: decimal.RequireFromString(amount), CoinSymbol: "USDT", NetworkName: "Tron",
	}
	equal, moved, otherCoin, otherPrice := coin, coin, coin, coin
	equal.Price = decimal.RequireFromString(price + "00")
	moved.Amount, otherCoin.CoinSymbol, otherPrice.Price = one, "BTC", one
	noCoin, noCoinMoved := request("A-18"), request("A-18")
	noCoinMoved.Amount = one
	refused(422)(s)
	rolledBack, _ := inTx(errors.New("rolled back"), InsertInvoiceTx, coin, InsertOptions{})
	last := rolledBack.Job.ID
	for _, test := range []struct {
		name     string
		request  gateway.InvoiceRequest
		merchant string
		want     error
		isNew    bool
		run      rivertype.JobState // then; empty for no run
	}{
		{"the first", coin, "", nil, true, ""},
		{"a second, equal request", equal, "", nil, false, ""},
		{"a second request, after the rate moved", moved, "", nil, false, cancelled},
		{"after a rejection", coin, "", nil, true, completed},
		{"after a success", moved, "", nil, false, ""},
		{"another coin", otherCoin, "", ErrOtherRequest, false, ""},
		{"another price", otherPrice, "", ErrOtherRequest, false, ""},
		{"another merchant", coin, "shop-b", nil, true, ""},
		{"an invalid request", gateway.InvoiceRequest{OrderID: "A-18"}, "", gateway.ErrInvalidArgument, false, ""},
		{"an order without a coin", noCoin, "", nil, true, ""},
		{"another amount without a coin", noCoinMoved, "", ErrOtherRequest, false, ""},
	} {
		inserted, err := inTx(nil, InsertInvoiceTx, test.request, InsertOptions{Merchant: test.merchant})
		if !errors.Is(err, test.want) || inserted != nil && (inserted.Job.ID != last) != test.isNew {
			t.Errorf("%s: %+v after job %d: %v", test.name, inserted, last, err)
		}
		if inserted != nil {
			last = inserted.Job.ID
		}
		if test.run != "" {
			if job, err := s.runJob(inserted.Job); job.State != test.run {
				t.Errorf("%s: %s: %v", test.name, job.State, err)
			}
		}
	}
	want := `"price":"` + price + `","orderId":"A-17","baseCurrency":"usd","coinSymbol":"USDT","networkName":"Tron","amount":"` + amount + `"`
	for _, sent := range s.gw.Requests() {
		if !strings.Contains(string(sent.Body), want) {
			t.Errorf("sent %s", sent.Body)
		}
	}
}
