package orders_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/orders"
)

// The types of the package gateway, as far as the translation knows them.
type (
	state   int8
	outcome int8
	request string
	found   struct {
		Exists   bool
		By, Note string
		At       time.Time
		Attempt  string
	}
	record struct {
		Outcome    outcome           `json:"outcome"`
		Request    request           `json:"request"`
		Invoice    json.RawMessage   `json:"invoice,omitzero"`
		Others     []json.RawMessage `json:"others,omitzero"`
		SentAt     time.Time         `json:"sentAt,omitzero"`
		CreatedAt  time.Time         `json:"createdAt,omitzero"`
		StatusCode int               `json:"statusCode,omitzero"`
		Body       []byte            `json:"body,omitzero"`
		Cause      string            `json:"cause,omitzero"`
	}
)

func (r request) Equal(other request) bool { return r == other }

const (
	unknown outcome = iota
	succeeded
	notSent
	rejected
	conflict
)

// A row of records, and the record that its guard returns.
type told struct {
	row orders.Row[record]
	now int64
}

func (o *told) begin(attempt int64, asked request) {
	o.now += 10
	o.row, _ = o.row.Begin(orders.Begin[record]{
		Attempt: attempt, Lease: lease, Resubmit: true, Record: orders.Held[record](asked, time.UnixMicro(o.now)),
	}, o.now)
}

func (o *told) end(attempt int64, r record) record {
	o.now += 10
	end := orders.EndOf("here", attempt, r)
	o.row, _ = o.row.End(end, o.now)
	return orders.Ended(&o.row, end, o.now)
}

func (o *told) status() orders.Status[state, found, record] {
	return orders.StatusOf[state, found](&o.row, "north", "A-17", o.now, time.UnixMicro(o.now))
}

// While an order is in flight, its record is the request, and Earlier has the outcomes of earlier attempts.
func TestStatusOf_inFlight(t *testing.T) {
	t.Parallel()
	o := told{now: 1000}
	o.begin(1, "first")
	o.end(1, record{Request: "first", Cause: "lost"})
	assert.Nil(t, orders.Before(&orders.Row[record]{}))
	o.begin(2, "second")
	assert.Equal(t, "lost", orders.Before(&o.row).Cause)
	status := o.status()
	assert.Equal(t, state(orders.InFlight), status.State)
	assert.Equal(t, record{Request: "second"}, status.Record)
	require.Len(t, status.Earlier, 1)
	assert.Equal(t, "lost", status.Earlier[0].Cause)
	assert.Zero(t, status.Since)
	assert.Equal(t, "lost", o.end(3, record{Outcome: rejected}).Cause, "of a stranger, while another attempt has the lease")

	o.now += lease
	status = o.status()
	assert.Equal(t, state(orders.Unknown), status.State)
	assert.Equal(t, "the process did not record an outcome", status.Record.Cause)
	assert.Equal(t, orders.TimeAt(1010), status.Since)
	require.Len(t, status.Earlier, 1)
}

// An outcome that proves nothing counts as unknown.
func TestEndOf(t *testing.T) {
	t.Parallel()
	for given, want := range map[outcome]orders.End[record]{
		unknown: {Result: orders.Undecided}, succeeded: {Result: orders.Success, Bare: true}, notSent: {Result: orders.Nothing},
		rejected: {Result: orders.Nothing}, conflict: {Result: orders.Undecided},
	} {
		want.Record.Outcome = given
		if want.Result == orders.Undecided {
			want.Record.Outcome = unknown
		}
		assert.Equal(t, want, orders.EndOf("", 0, record{Outcome: given}), given)
	}
	assert.False(t, orders.EndOf("", 0, record{Outcome: succeeded, Invoice: json.RawMessage("1")}).Bare)
}

// A created order has its invoice, when that was recorded, and further invoices, also those that are not known.
func TestStatusOf_created(t *testing.T) {
	t.Parallel()
	o := told{now: 1000}
	o.begin(1, "asked")
	has := o.end(1, record{Outcome: succeeded, Request: "asked", Invoice: json.RawMessage("1")})
	assert.Equal(t, orders.TimeAt(1020), has.CreatedAt)
	has = o.end(2, record{Outcome: succeeded, Request: "asked"})
	assert.Equal(t, orders.TimeAt(1020), has.CreatedAt)
	assert.Equal(t, []json.RawMessage{json.RawMessage("null")}, has.Others)
	assert.Equal(t, has, o.status().Record)
	assert.Equal(t, has, o.end(1, record{Outcome: rejected}), "what comes late")
}

// An attempt may end while the order is free, or another attempt has it.
func TestEnded(t *testing.T) {
	t.Parallel()
	o := told{now: 1000}
	no := record{Outcome: rejected, Cause: "no"}
	assert.Equal(t, no, o.end(9, no), "of an order that was never begun")
	o.begin(1, "first")
	o.end(1, record{Request: "first", Cause: "lost"})
	o.begin(2, "second")
	o.end(2, record{Request: "second", Cause: "lost too"})
	o.begin(3, "third")
	assert.Equal(t, "lost too", orders.Before(&o.row).Cause, "the last one before")
	has := o.end(1, record{Outcome: succeeded, Invoice: json.RawMessage("1")})
	assert.Equal(t, json.RawMessage("1"), has.Invoice, "an invoice, although the order is in flight")
}

// A person's finding is the record of the order, with the request if that is sure.
func TestResolveOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		second  request
		invoice string
		want    record
	}{
		{"asked", "", record{Request: "asked", Cause: "a person found that the invoice exists, and did not record what it says"}},
		{"asked", "1", record{Request: "asked", Invoice: json.RawMessage("1")}},
		{"other", "1", record{Invoice: json.RawMessage("1")}},
	} {
		o := told{now: 1000}
		for attempt, asked := range []request{"asked", tt.second} {
			o.begin(int64(attempt+1), asked)
			o.end(int64(attempt+1), record{Request: asked, StatusCode: 502, Body: []byte("a page"), Cause: "lost"})
		}
		resolve := orders.ResolveOf(&o.row, orders.Finding{Exists: true, By: "anna", Note: "4711"}, json.RawMessage(tt.invoice))
		resolve.Attempt = 2
		var answer orders.Answer
		o.row, answer = o.row.Resolve(resolve, o.now+1)
		require.NoError(t, answer.Err)
		status := o.status()
		tt.want.Outcome, tt.want.CreatedAt = succeeded, orders.TimeAt(o.now+1)
		assert.Equal(t, tt.want, status.Record)
		for invoice, isSame := range map[string]bool{tt.invoice: true, "2": false} {
			again := orders.ResolveOf(&o.row, orders.Finding{}, json.RawMessage(invoice))
			assert.Equal(t, isSame, again.Same, "%s", invoice)
			assert.Equal(t, tt.want.Request, again.Record.Request, "of the invoice")
		}
		assert.Equal(t, []found{{true, "anna", "4711", orders.TimeAt(o.now + 1), "2"}}, status.Findings)
	}
}

// Each text is another attempt, and comes back.
func TestAttemptOf(t *testing.T) {
	t.Parallel()
	seen := map[int64]string{}
	for _, name := range []string{"1", "z", "1y2p0ij32e8e7", "of-another-guard", "of-another", "-1", "1y2p0ij32e8e8", "ä"} {
		attempt := orders.AttemptOf(name)
		assert.Positive(t, attempt, name)
		assert.Empty(t, seen[attempt], name)
		seen[attempt] = name
	}
	for _, attempt := range []int64{0, 1, 35, 1<<63 - 1} {
		assert.Equal(t, attempt, orders.AttemptOf(orders.NameOf(attempt)))
	}
}
