package sqlguard

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/shopspring/decimal"
)

// A till is a gateway, and two processes of a merchant with a guard each.
type till struct {
	*gatewaytest.Server
	kind        gatewaytest.RepeatedOrders
	guard       *Guard
	first, then *gateway.Client
}

func newTill(t *testing.T, w testDB, kind gatewaytest.RepeatedOrders) *till {
	t.Helper()
	gw := gatewaytest.NewServer()
	t.Cleanup(gw.Close)
	gw.SetRepeatedOrders(kind)
	p := &till{Server: gw, kind: kind, guard: w.guard(t)}
	execute(t, p.guard.db, `DELETE FROM `+w.table)
	for client, guard := range map[**gateway.Client]*Guard{&p.first: p.guard, &p.then: w.guard(t)} {
		c, err := gateway.New(gw.URL, gw.APIKey, gateway.WithOrderGuard(guard))
		check(t, err)
		*client = c
	}
	return p
}

// same and other are equal to the request of the first call, and another one for its order.
func same() gateway.InvoiceRequest {
	r := invoice
	r.Price = decimal.New(105, -1)
	return r
}

func other() gateway.InvoiceRequest {
	r := invoice
	r.Price = decimal.New(1051, -2)
	return r
}

// second makes a call in the other process, and compares how many invoices exist after it. Without
// options it sends nothing if there is one.
func (p *till) second(t *testing.T, r gateway.InvoiceRequest, exist int, opts ...gateway.CallOption) (*gateway.Invoice, error) {
	t.Helper()
	existed, sent := len(p.InvoicesFor(order)), len(p.Requests())
	created, err := p.then.CreateInvoice(t.Context(), r, opts...)
	if n := len(p.InvoicesFor(order)); n != exist {
		t.Errorf("%d invoices exist, want %d", n, exist)
	}
	if again := len(p.Requests()) - sent; existed > 0 && len(opts) == 0 && again > 0 {
		t.Errorf("%d requests for an order that has an invoice", again)
	}
	return created, err
}

// What a call does in another process than the first, by what the guard knows of its order and by
// what the gateway does with a repeated order.
func TestGuard_second_call(t *testing.T) {
	cases := map[string]func(t *testing.T, p *till){
		"nothing":                                secondOfNone,
		"created":                                secondOfCreated,
		"created, found by a person":             secondOfFound,
		"created, found by a person who kept it": secondOfKept,
		"unknown":                                secondOfUnknown,
		"the process died":                       secondOfDied,
		"resubmitted, and refused":               secondOfRefused,
		"cannot say":                             secondOfFailed,
	}
	inBoth(t, func(t *testing.T, w testDB) {
		for name, test := range cases {
			for _, kind := range gatewaytest.AllRepeatedOrders() {
				t.Run(name+", "+string(kind), func(t *testing.T) { test(t, newTill(t, w, kind)) })
			}
		}
	})
}

func secondOfNone(t *testing.T, p *till) {
	if created, err := p.second(t, other(), 1); err != nil || created.Replayed {
		t.Error(created, err)
	}
}

func secondOfCreated(t *testing.T, p *till) {
	first, err := p.first.CreateInvoice(t.Context(), invoice)
	check(t, err)
	again, err := p.second(t, same(), 1)
	if err != nil || !again.Replayed || !bytes.Equal(again.Raw, first.Raw) || len(first.Raw) == 0 {
		t.Errorf("%+v, %v", again, err)
	}
	_, err = p.second(t, other(), 1)
	conflict, ok := errors.AsType[*gateway.OrderConflictError](err)
	if !ok || !bytes.Equal(conflict.Invoice.Raw, first.Raw) || conflict.Request.Price.Exponent() != -2 || gateway.OutcomeOf(err) != gateway.OutcomeConflict || gateway.SafeToRetry(err) {
		t.Errorf("%+v", err)
	}
}

func secondOfFound(t *testing.T, p *till) {
	p.lose(t)
	p.resolve(t, Resolution{Exists: true, By: "anna"})
	if again, err := p.second(t, same(), 1); err != nil || !again.Replayed || again.Raw != nil {
		t.Errorf("%+v, %v", again, err)
	}
	_, err := p.second(t, other(), 1)
	if conflict, ok := errors.AsType[*gateway.OrderConflictError](err); !ok || conflict.Invoice != nil {
		t.Errorf("%+v", err)
	}
}

func secondOfKept(t *testing.T, p *till) {
	p.lose(t)
	found := json.RawMessage("{ \"id\": 4711,\t\"amount\": 10.50 }\n")
	p.resolve(t, Resolution{Exists: true, By: "anna", Invoice: found})
	if again, err := p.second(t, same(), 1); err != nil || !again.Replayed || !bytes.Equal(again.Raw, found) {
		t.Errorf("%+v, %v", again, err)
	}
}

// lose makes the first call, whose response is lost.
func (p *till) lose(t *testing.T) *gateway.OutcomeUnknownError {
	t.Helper()
	p.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	_, err := p.first.CreateInvoice(t.Context(), invoice)
	unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
	if !ok || unknown.Replayed || unknown.RequestID == "" {
		t.Fatalf("%+v", err)
	}
	return unknown
}

func (p *till) resolve(t *testing.T, r Resolution) {
	t.Helper()
	pending, err := p.guard.Pending(t.Context(), PendingQuery{})
	if err != nil || len(pending) != 1 {
		t.Fatal(pending, err)
	}
	check(t, p.guard.Resolve(t.Context(), pending[0], r))
}

// wantUnknown compares what a call is told of an earlier one.
func wantUnknown(t *testing.T, err error, want *gateway.OutcomeUnknownError) {
	t.Helper()
	unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
	if !ok || !unknown.Replayed || unknown.RequestID != want.RequestID ||
		unknown.SentAt.Sub(want.SentAt).Abs() > time.Microsecond || unknown.StatusCode != want.StatusCode || !bytes.Equal(unknown.Body, want.Body) {
		t.Errorf("%+v, want %+v", err, want)
	}
}

func secondOfUnknown(t *testing.T, p *till) {
	first := p.lose(t)
	for _, r := range []gateway.InvoiceRequest{same(), other()} {
		_, err := p.second(t, r, 1)
		wantUnknown(t, err, first)
	}
	exist := map[gatewaytest.RepeatedOrders]int{gatewaytest.RepeatAgain: 2, gatewaytest.RepeatSame: 1, gatewaytest.RepeatRefused: 1}[p.kind]
	again, err := p.second(t, same(), exist, gateway.AllowResubmit())
	if p.kind != gatewaytest.RepeatRefused {
		check(t, err)
		if id, _ := again.Text("id"); again.Replayed || id != p.Invoices()[exist-1].ID {
			t.Errorf("%+v", again)
		}
		return
	}
	refused, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
	if !ok || refused.Replayed || refused.StatusCode != http.StatusConflict || gateway.SafeToRetry(err) {
		t.Fatalf("%+v", err)
	}
	_, err = p.second(t, same(), exist)
	wantUnknown(t, err, refused)
}

func secondOfDied(t *testing.T, p *till) {
	begun := orderOf(order)
	check(t, granted(p.guard.Begin(t.Context(), begun)))
	check(t, p.guard.endLeases(t.Context()))
	o, err := p.guard.Order(t.Context(), "", order)
	check(t, err)
	want := &gateway.OutcomeUnknownError{RequestID: begun.RequestID, SentAt: o.Begun}
	_, err = p.second(t, same(), 0)
	wantUnknown(t, err, want)
	if !strings.Contains(err.Error(), "did not record an outcome") || o.Record.Request.Price.Exponent() != -2 {
		t.Errorf("%v, %+v", err, o)
	}
}

func secondOfRefused(t *testing.T, p *till) {
	first := p.lose(t)
	p.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultRefuse(http.StatusUnprocessableEntity, "Not now"))
	_, err := p.second(t, same(), 1, gateway.AllowResubmit())
	wantUnknown(t, err, first)
	_, err = p.second(t, same(), 1)
	wantUnknown(t, err, first)
}

func secondOfFailed(t *testing.T, p *till) {
	db := p.guard.db
	check(t, db.Close())
	_, err := p.first.CreateInvoice(t.Context(), invoice)
	failure, ok := errors.AsType[*gateway.TransportError](err)
	if !ok || failure.Phase != gateway.PhaseOrder || !gateway.SafeToRetry(err) || gateway.OutcomeOf(err) != gateway.OutcomeUnknown || len(p.Invoices()) > 0 {
		t.Errorf("%+v", err)
	}
}

// Equal calls wait for the one that is in flight, in its process and in another. Another request
// for the order is refused.
func TestGuard_in_flight(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		guards := []*Guard{w.guard(t), w.guard(t)}
		reached, goOn := make(chan struct{}), make(chan struct{})
		s := &service{}
		s.respond = func(req *http.Request) (*http.Response, error) {
			close(reached)
			<-goOn
			return s.status(req, http.StatusCreated)
		}
		results := make(chan *gateway.Invoice, 3)
		call := func(g *Guard) {
			created, err := s.client(t, g).CreateInvoice(t.Context(), invoice)
			if err != nil {
				t.Error(err)
			}
			results <- created
		}
		go call(guards[0])
		<-reached
		for _, g := range guards {
			_, err := s.client(t, g).CreateInvoice(t.Context(), other())
			if !errors.Is(err, gateway.ErrOrderInFlight) || !gateway.SafeToRetry(err) {
				t.Error(err)
			}
			go call(g)
		}
		close(goOn)
		replayed := 0
		for range 3 {
			if created := <-results; created != nil && created.Replayed && string(created.Raw) == `{"id":1}` {
				replayed++
			}
		}
		if s.sent != 1 || replayed != 2 {
			t.Errorf("%d were sent, %d replayed", s.sent, replayed)
		}
	})
}

// A lease that is shorter than a call may last is refused, with both named.
func TestWithLease_short(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t, WithLease(3*time.Minute))
		s := &service{}
		_, err := s.client(t, g).CreateInvoice(t.Context(), invoice)
		if !errors.Is(err, gateway.ErrInvalidArgument) || !strings.Contains(err.Error(), "3m10s by WithRetry") || !strings.Contains(err.Error(), "of the order is 2m59.") || s.sent > 0 {
			t.Error(err)
		}
		g.wantState(t, StateFree, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.client(t, g).CreateInvoice(ctx, invoice); err != nil {
			t.Error(err)
		}
	})
}

// A record has every byte and every digit, whatever they are.
func TestGuard_record_bytes(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g := w.guard(t)
		o := orderOf(order)
		o.Request.Price, o.Request.Amount = decimal.New(1000, -3), decimal.New(5000, 0)
		o.Request.BaseCurrency, o.Request.CoinSymbol, o.Request.NetworkName = "usd", "BTC\u2028", `"\`
		for _, invoice := range []json.RawMessage{nil, []byte("{\"a\":\"\x00\xff\",\r\n \"b\": 1.50}\n")} {
			r := gateway.OrderRecord{
				Outcome: gateway.OutcomeUnknown, Request: o.Request, RequestID: "a-b", SentAt: time.UnixMicro(1_700_000_000_123_456).UTC(),
				StatusCode: 502, Body: []byte("\x00\xff\xfe<html>"), Cause: "line\x00\xff\nline",
			}
			if o.Resubmit = invoice != nil; o.Resubmit {
				r.Outcome, r.Invoice = gateway.OutcomeSucceeded, invoice
			}
			check(t, errors.Join(granted(g.Begin(t.Context(), o)), recorded(g.End(t.Context(), o, r))))
			r.Cause = "line\uFFFD\uFFFD line"
			got, err := g.Order(t.Context(), "", order)
			if r.CreatedAt = got.Created; err != nil || !reflect.DeepEqual(got.Record, r) {
				t.Errorf("%+v, %v, want %+v", got.Record, err, r)
			}
		}
	})
}

// The record of an unknown order stays while it is sent again, also by a process that dies.
func TestGuard_record_of_resubmission(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g, died := w.guard(t), w.guard(t)
		first, second, third := orderOf(order), gateway.Order{Request: other(), RequestID: "second", Resubmit: true}, gateway.Order{Request: same(), RequestID: "third", Resubmit: true}
		earlier := gateway.OrderRecord{Request: first.Request, RequestID: "first", SentAt: time.Unix(1_700_000_000, 0).UTC(), StatusCode: 500, Body: []byte("oops"), Cause: "500"}
		check(t, errors.Join(granted(g.Begin(t.Context(), first)), recorded(g.End(t.Context(), first, earlier))))

		for range 2 { // a call that is not sent changes nothing
			a, err := g.Begin(t.Context(), second)
			if err != nil || !reflect.DeepEqual(a.Known, &earlier) {
				t.Errorf("%+v, %v", a.Known, err)
			}
			check(t, recorded(g.End(t.Context(), second, gateway.OrderRecord{Outcome: gateway.OutcomeNotSent})))
		}
		check(t, errors.Join(granted(died.Begin(t.Context(), second)), g.endLeases(t.Context())))
		a, err := g.Begin(t.Context(), third)
		known := a.Known
		if err != nil || known.RequestID != "second" || !known.Request.Price.Equal(other().Price) || known.SentAt.Equal(earlier.SentAt) ||
			known.StatusCode != 500 || string(known.Body) != "oops" || !strings.HasSuffix(known.Cause, "before: request first: 500") {
			t.Errorf("%+v, %v", known, err)
		}
		check(t, recorded(g.End(t.Context(), third, gateway.OrderRecord{Outcome: gateway.OutcomeRejected})))
		wantError(t, granted(w.guard(t).Begin(t.Context(), first)), errUnknown)
		o, err := g.Order(t.Context(), "", order)
		if err != nil || !reflect.DeepEqual(o.Record, *known) {
			t.Errorf("%+v, %v, want %+v", o.Record, err, known)
		}
		check(t, g.Resolve(t.Context(), o, Resolution{Exists: true, By: "anna"}))
		if o, err = g.Order(t.Context(), "", order); err != nil || o.Record.Request.OrderID != "" { // of either request
			t.Errorf("%+v, %v", o, err)
		}
	})
}

// To ask for an order that is refused writes nothing, and locks nothing.
func TestGuard_Begin_refused_writes_nothing(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		g, other := w.guard(t), w.guard(t)
		g.once(t, "created", gateway.OutcomeSucceeded)
		g.once(t, "unknown", gateway.OutcomeUnknown)
		check(t, g.begins(t.Context(), "in flight"))
		lock := `UPDATE ` + w.table + ` SET note = 'mine'` // of all rows, and in SQLite of the file
		defer w.lockWith(t, lock)()
		for id, want := range map[string]error{"created": errCreated, "unknown": errUnknown, "in flight": errInFlight} {
			wantError(t, other.begins(t.Context(), id), want)
		}
	})
}

// The key is in no column, in no spelling, whatever the gateway says of it.
func TestGuard_no_key(t *testing.T) {
	inBoth(t, func(t *testing.T, w testDB) {
		const key = "k3y-5ecret/with+signs=42"
		g := w.guard(t, WithMerchants())
		n, s := 0, &service{}
		s.respond = func(req *http.Request) (*http.Response, error) {
			n++
			if n%2 == 0 {
				return nil, fmt.Errorf("proxy %s: %s refused", key, url.QueryEscape(key))
			}
			return s.echo(req, key)
		}
		c, err := gateway.New("https://gateway.example", key, gateway.WithOrderGuard(g), gateway.WithHTTPClient(&http.Client{Transport: s}))
		check(t, err)
		for i := range 6 {
			r := invoice
			r.OrderID = fmt.Sprint(i)
			_, _ = c.CreateInvoice(t.Context(), r)
			_, _ = c.CreateInvoice(t.Context(), r, gateway.WithAPIKey(key+"-2"), gateway.WithMerchant("another"))
		}
		var row string
		query := `SELECT CAST(coalesce(string_agg(CAST(t AS text) || coalesce(convert_from(body, 'LATIN1'), '') || coalesce(convert_from(invoice, 'LATIN1'), ''), ' '), '') AS text) FROM ` + w.table + ` AS t`
		if w.dialect == SQLite {
			query = `SELECT group_concat(merchant || order_id || coalesce(token, '') || coalesce(note, '') || coalesce(request, '') || coalesce(request_id, '')
				|| coalesce(CAST(body AS text), '') || coalesce(cause, '') || coalesce(CAST(invoice AS text), ''), ' ') FROM ` + w.table
		}
		check(t, g.db.QueryRow(query).Scan(&row))
		for _, spelled := range []string{
			key, url.QueryEscape(key), url.PathEscape(key), hex.EncodeToString([]byte(key)), strings.ToUpper(hex.EncodeToString([]byte(key))),
			fmt.Sprintf("% x", key), fmt.Sprint([]byte(key)), base64.StdEncoding.EncodeToString([]byte(key)), base64.RawURLEncoding.EncodeToString([]byte(key)),
			strings.ReplaceAll(key, "/", `\/`),
		} {
			if strings.Contains(row, spelled) {
				t.Errorf("%q is in the table: %s", spelled, row)
			}
		}
		if !strings.Contains(row, "gateway said") {
			t.Errorf("the evidence is not kept: %s", row)
		}
	})
}

// echo responds with the key in several spellings.
func (s *service) echo(req *http.Request, key string) (*http.Response, error) {
	resp, err := s.status(req, http.StatusInternalServerError)
	text := fmt.Sprintf("gateway said %s %s %s", key, url.QueryEscape(key), strings.ReplaceAll(key, "/", `\/`))
	resp.Body = http.NoBody
	if err == nil {
		resp.Body = readCloser{strings.NewReader(text)}
	}
	return resp, err
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
