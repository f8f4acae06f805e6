package sqlguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

var interleavingDepth = flag.Int("interleaving.depth", 0, "how many steps the paths of TestInterleavings have; 0: as many as take a few seconds")

// TestInterleavings takes every path of so many steps of two processes and an operator over one
// order, and compares the guards with the model after each: in single steps, and in steps
// where a call is sent and answered at once, so that the paths reach further. All paths of eight single steps, in some minutes:
//
//	go test -run TestInterleavings/SQLite/single -timeout 1h -v -interleaving.depth 8
func TestInterleavings(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		guard := &gateway.MemoryGuard{}
		enumerate(t, &enumeration{subjects: subjects{guards: [2]gateway.OrderGuard{guard, guard}}}, 6)
	})
	t.Run("SQLite", func(t *testing.T) {
		e := overTable(t, sql.OpenDB(preparing{testDB{SQLite, "sqlite", ":memory:", ""}.open(t).Driver()}), DefaultTable)
		e.savepoints = true // in PostgreSQL the clock stands still in a transaction
		enumerate(t, e, 5)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		w := newPostgres(t)
		enumerate(t, overTable(t, w.open(t), w.table), 4)
	})
}

func enumerate(t *testing.T, e *enumeration, depth int) {
	t.Helper()
	if *interleavingDepth > 0 {
		depth = *interleavingDepth
	}
	e.each(t, "single steps", world{}, nil, depth)
	e.each(t, "whole calls", world{coarse: true}, nil, depth)
	if e.database != nil {
		slow := []move{{processA, begins}, {processA, losesNone}, {nobody, leaseIsOver}, {nobody, looks}, {nobody, resolves}}
		e.each(t, "a slow process", world{coarse: true}, slow, depth-1) // whose order is free again
		late := slices.Replace(slices.Clone(slow), 1, 2, move{processA, isCreated})
		e.each(t, "a process that succeeds late", world{coarse: true}, late, depth-1) // whose order exists, without its invoice
	}
}

func overTable(t *testing.T, db *sql.DB, table string) *enumeration {
	t.Helper()
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	e := &enumeration{}
	for i := range e.subjects.guards {
		guard, err := New(db, WithTable(table), WithLease(mostLease))
		check(t, err)
		e.subjects.guards[i], e.database = guard, guard
	}
	check(t, e.database.Migrate(t.Context()))
	return e
}

// preparing opens SQLite in memory so that it prepares each statement once, which would
// otherwise take most of the time.
type preparing struct{ driver driver.Driver }

func (p preparing) Driver() driver.Driver { return p.driver }

func (p preparing) Connect(context.Context) (driver.Conn, error) {
	conn, err := p.driver.Open(":memory:")
	return &preparingConn{conn, map[string]driver.Stmt{}}, err
}

type preparingConn struct {
	driver.Conn
	stmts map[string]driver.Stmt
}

func (c *preparingConn) Close() error {
	for _, stmt := range c.stmts {
		_ = stmt.Close()
	}
	return c.Conn.Close()
}

func (c *preparingConn) prepared(query string) (driver.Stmt, error) {
	if stmt, ok := c.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := c.Prepare(query)
	if err == nil {
		c.stmts[query] = stmt
	}
	return stmt, err
}

func (c *preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	stmt, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

func (c *preparingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	stmt, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

// A move is what happens next, and to whom.
type move struct {
	who    actor
	action action
}

type actor int8

const (
	processA actor = iota
	processB
	adrift // a request whose process has given it up, or has died
	nobody
)

type action string

const (
	begins         action = "begins"
	beginsOther    action = "begins another request"
	resubmits      action = "resubmits"
	resubmitsOther action = "resubmits another request"
	isSent         action = "sends"
	isCommitted    action = "is committed at the gateway"
	isRefused      action = "is refused at the gateway"
	isAnswered     action = "gets the response"
	isLost         action = "learns nothing"
	ends           action = "ends"
	crashes        action = "crashes"

	// Several steps at once, from sends to the response or its loss.
	isCreated  action = "creates the invoice"
	isRejected action = "is rejected"
	losesOne   action = "creates the invoice and learns nothing"
	losesNone  action = "is refused and learns nothing"

	leaseIsOver     action = "the lease is over"
	looks           action = "the operator looks"
	resolves        action = "the operator resolves"
	resolvesInvoice action = "the operator resolves, with the invoice"
)

// A stage is how far the call of a process is.
type stage int8

const (
	idle stage = iota
	wasBegun
	wasSent
	wasCommitted
	wasRefused
	wasAnswered
)

// A process makes one call at a time.
type process struct {
	stage     stage
	calls     int
	requestID string
	request   string
	known     fact // as Begin has returned it
	over      bool // its lease is
	outcome   gateway.Outcome
}

// report is what the client has the guard record of the call.
func (p *process) report() fact {
	r := fact{outcome: p.outcome, request: p.request, requestID: p.requestID, sent: asReported}
	switch {
	case p.outcome == gateway.OutcomeSucceeded:
		r.invoice = invoiceOf(p.requestID)
	case p.outcome == gateway.OutcomeUnknown:
		r.body = bodyOf(p.requestID)
	case p.known.requestID != "":
		r = p.known // nothing is proven about that invoice
		r.request = p.request
	}
	return r
}

func invoiceOf(requestID string) string { return `{"invoice": "of ` + requestID + `"}` }

func bodyOf(requestID string) string { return "body of " + requestID }

// A world is the order as it should be, and all who act on it. It is a value.
type world struct {
	order     model
	inMemory  bool // one process that does not crash, and no operator
	coarse    bool // a call is sent and answered in one step
	processes [2]process
	adrift    int
	invoices  int    // at the gateway
	looked    int    // attempts of the order as the operator has read it; 0 if he has not
	found     int    // invoices, by the operator
	kept      string // the invoice that a guard was told of first
}

// calm is whether there is no invoice at the gateway and none can come.
func (w *world) calm() bool { return w.invoices == 0 && w.inTransit() == 0 }

func (w *world) inTransit() int {
	n := w.adrift
	for _, p := range w.processes {
		if p.stage == wasSent {
			n++
		}
	}
	return n
}

// enabled are the steps that can happen.
func (w *world) enabled() (steps []move) {
	for i := range w.processes {
		if i == 1 && w.processes[0].calls == 0 {
			break // the processes are alike: the one that begins first is A
		}
		for _, a := range w.ofProcess(actor(i)) {
			steps = append(steps, move{actor(i), a})
		}
	}
	if w.adrift > 0 {
		steps = append(steps, move{adrift, isCommitted}, move{adrift, isRefused})
	}
	if w.inMemory {
		return steps
	}
	if w.order.state() == StateInFlight {
		steps = append(steps, move{nobody, leaseIsOver})
	}
	if w.order.state() == StateUnknown && w.inTransit() == 0 && w.looked != w.order.attempts {
		steps = append(steps, move{nobody, looks})
	}
	if w.looked > 0 {
		steps = append(steps, move{nobody, resolves})
		if w.found > 0 {
			steps = append(steps, move{nobody, resolvesInvoice})
		}
	}
	return steps
}

func (w *world) ofProcess(who actor) (actions []action) {
	p := &w.processes[who]
	switch p.stage {
	case idle:
		return w.calls(who)
	case wasBegun:
		actions = []action{ends, crashes}
		switch {
		case p.over: // then it sends nothing
		case w.coarse:
			actions = append(actions, isCreated, isRejected, losesOne, losesNone)
		default:
			actions = append(actions, isSent)
		}
	case wasSent:
		actions = []action{isCommitted, isRefused, isLost, crashes}
	case wasCommitted, wasRefused:
		actions = []action{isAnswered, isLost, crashes}
	case wasAnswered:
		actions = []action{ends, crashes}
	}
	if w.inMemory {
		actions = slices.DeleteFunc(actions, func(a action) bool { return a == crashes })
	}
	return actions
}

func (w *world) calls(who actor) []action {
	actions := []action{begins}
	if who == processB {
		actions = append(actions, beginsOther)
	}
	switch state := w.order.state(); {
	case state == StateFree: // to resubmit is to begin
	case state != StateUnknown || w.calm():
		actions = append(actions, resubmits)
		if who == processB {
			actions = append(actions, resubmitsOther)
		}
	}
	return actions
}

// An expectation is what a guard must return: what is known, and one of the errors.
type expectation struct {
	known fact
	err   error
}

// take changes the world as the step does.
func (w *world) take(s move) expectation {
	switch {
	case s.who == adrift:
		w.adrift--
		w.deliver(s.action)
	case s.who == nobody:
		return w.operate(s.action)
	case w.processes[s.who].stage == idle:
		return w.begin(s)
	default:
		return w.proceed(&w.processes[s.who], s.action)
	}
	return expectation{}
}

func (w *world) deliver(a action) stage {
	if a == isCommitted {
		w.invoices++
		return wasCommitted
	}
	return wasRefused
}

func (w *world) operate(a action) expectation {
	switch a {
	case leaseIsOver:
		w.order.leaseOver()
		for i := range w.processes {
			w.processes[i].over = w.processes[i].over || w.processes[i].requestID == w.order.held.requestID
		}
	case looks:
		w.looked, w.found = w.order.attempts, w.invoices
	case resolves:
		return expectation{err: w.order.resolve(w.looked, w.found > 0, "")}
	case resolvesInvoice:
		err := w.order.resolve(w.looked, w.found > 0, invoiceOf("the operator"))
		w.keep(err == nil, "the operator")
		return expectation{err: err}
	}
	return expectation{}
}

func (w *world) keep(exists bool, from string) {
	if exists && w.kept == "" {
		w.kept = invoiceOf(from)
	}
}

var refusalOf = map[State]error{
	StateInFlight: errInFlight, StateUnknown: errUnknown, StateCreated: errCreated,
}

func (w *world) begin(s move) expectation {
	p := &w.processes[s.who]
	p.calls++
	requestID, request := fmt.Sprintf("%c%d", "AB"[s.who], p.calls), "x"
	if s.action == beginsOther || s.action == resubmitsOther {
		request = "y"
	}
	known, refused := w.order.begin(requestID, request, s.action == resubmits || s.action == resubmitsOther)
	if refused == StateFree {
		*p = process{stage: wasBegun, calls: p.calls, requestID: requestID, request: request, known: known, outcome: gateway.OutcomeNotSent}
	}
	return expectation{known, refusalOf[refused]}
}

func (w *world) proceed(p *process, a action) (want expectation) {
	switch a {
	case isCreated, isRejected, losesOne, losesNone:
		for _, a := range map[action][]action{
			isCreated: {isSent, isCommitted, isAnswered}, isRejected: {isSent, isRefused, isAnswered},
			losesOne: {isSent, isCommitted, isLost}, losesNone: {isSent, isRefused, isLost},
		}[a] {
			w.proceed(p, a)
		}
	case isSent:
		p.stage = wasSent
	case isCommitted, isRefused:
		p.stage = w.deliver(a)
	case isAnswered:
		p.outcome = gateway.OutcomeRejected
		if p.stage == wasCommitted {
			p.outcome = gateway.OutcomeSucceeded
		}
		p.stage = wasAnswered
	case isLost, crashes:
		if p.stage == wasSent {
			w.adrift++
		}
		p.stage, p.outcome = wasAnswered, gateway.OutcomeUnknown
	case ends:
		want.known = w.order.end(p.requestID, p.report())
		w.keep(p.outcome == gateway.OutcomeSucceeded, p.requestID)
	}
	if a == ends || a == crashes {
		*p = process{calls: p.calls}
	}
	return want
}

// subjects are the guards of the two processes, and what the client and the operator
// remember of what the guards returned.
type subjects struct {
	id     string
	guards [2]gateway.OrderGuard
	orders [2]gateway.Order
	known  [2]*gateway.OrderRecord
	looked Order
}

func (r *subjects) do(ctx context.Context, m move, before, after *world) (known *gateway.OrderRecord, err error) {
	guard, _ := r.guards[0].(*Guard)
	switch m.action {
	case begins, beginsOther, resubmits, resubmitsOther:
		return r.begin(ctx, m, after)
	case ends:
		p := &before.processes[m.who]
		has, err := r.guards[m.who].End(ctx, r.orders[m.who], r.record(m.who, p))
		return &has, err
	case crashes:
		forget(r.guards[m.who].(*Guard))
	case leaseIsOver:
		err = guard.endLease(ctx, r.id)
	case looks:
		r.looked, err = guard.Order(ctx, "", r.id)
	case resolves, resolvesInvoice:
		finding := Resolution{Exists: before.found > 0, By: "anna"}
		if m.action == resolvesInvoice {
			finding.Invoice = []byte(invoiceOf("the operator"))
		}
		err = guard.Resolve(ctx, r.looked, finding)
	}
	return nil, err
}

func (r *subjects) begin(ctx context.Context, m move, after *world) (*gateway.OrderRecord, error) {
	o := gateway.Order{Request: invoice, RequestID: fmt.Sprintf("%c%d", "AB"[m.who], after.processes[m.who].calls)}
	o.Request.OrderID = r.id
	if o.Request.CoinSymbol = "x"; m.action == beginsOther || m.action == resubmitsOther {
		o.Request.CoinSymbol = "y"
	}
	o.Resubmit = m.action == resubmits || m.action == resubmitsOther
	lease, err := r.guards[m.who].Begin(ctx, o)
	err = granted(lease, err)
	if err == nil {
		r.orders[m.who], r.known[m.who] = o, lease.Known
	}
	if _, leased := r.guards[m.who].(*Guard); lease.Expires.IsZero() == (leased && err == nil) {
		err = fmt.Errorf("%w, until %v", err, lease.Expires)
	}
	return lease.Known, err
}

// record is what the client has the guard keep; see report.
func (r *subjects) record(who actor, p *process) gateway.OrderRecord {
	o := r.orders[who]
	kept := gateway.OrderRecord{Outcome: p.outcome, Request: o.Request, RequestID: o.RequestID, SentAt: sentAt}
	switch known := r.known[who]; {
	case p.outcome == gateway.OutcomeSucceeded:
		kept.StatusCode, kept.Invoice = http.StatusCreated, []byte(invoiceOf(o.RequestID))
	case p.outcome == gateway.OutcomeUnknown:
		kept.StatusCode, kept.Body, kept.Cause = http.StatusBadGateway, []byte(bodyOf(o.RequestID)), "502"
	case known != nil:
		kept = *known
		kept.Request, kept.Cause = o.Request, "sent again: refused; before: "+known.Cause
	}
	return kept
}

// forget makes a guard that of a new process.
func forget(g *Guard) { g.tokens, g.unended = map[key]holder{}, map[key]string{} }

func (g *Guard) endLease(ctx context.Context, id string) error {
	_, err := g.db.ExecContext(ctx, `UPDATE "`+g.cfg.table+`" SET lease_until = begun_at WHERE order_id = $1`, id)
	return err
}

var sentAt = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// factOf is what a record says, as the model has it.
func factOf(r *gateway.OrderRecord) fact {
	if r == nil {
		return fact{}
	}
	f := fact{r.Outcome, r.Request.CoinSymbol, r.RequestID, string(r.Invoice), string(r.Body), whenBegun}
	switch {
	case r.SentAt.IsZero():
		f.sent = notSent
	case r.SentAt.Equal(sentAt):
		f.sent = asReported
	}
	failed := f.body != "" || f.outcome == gateway.OutcomeUnknown && f.sent != notSent
	if failed != (r.Cause != "") && f.outcome == gateway.OutcomeUnknown || f.body != "" != (r.StatusCode == http.StatusBadGateway) {
		f.body += fmt.Sprintf(" (status %d, cause %q)", r.StatusCode, r.Cause)
	}
	return f
}

// An enumeration takes all paths.
type enumeration struct {
	t            *testing.T
	database     *Guard // nil for a guard in memory
	savepoints   bool
	ids          int
	start        world
	subjects     subjects
	path         []move
	paths, moves int
}

// each takes every path of so many moves after some.
func (e *enumeration) each(t *testing.T, name string, start world, after []move, depth int) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		start.inMemory = e.database == nil
		e.t, e.start, e.path, e.paths, e.moves = t, start, after, 0, 0
		e.descend(e.again(), depth)
		t.Logf("%d paths of %d steps: %d steps", e.paths, depth, e.moves-1)
	})
}

func (e *enumeration) descend(w world, depth int) {
	e.moves++
	if depth == 0 {
		e.paths++
		return
	}
	for i, m := range w.enabled() {
		if i > 0 && !e.savepoints {
			e.again()
		}
		mark := e.mark(m)
		next := w
		want := next.take(m)
		e.path = append(e.path, m)
		e.move(m, &w, &next, want)
		e.descend(next, depth-1)
		e.path = e.path[:len(e.path)-1]
		e.back(m, mark)
	}
}

// A mark is how the subjects were.
type mark struct {
	subjects subjects
	tokens   [2]map[key]holder
}

// mark returns how the subjects are before a move, for back to return to.
func (e *enumeration) mark(m move) (before mark) {
	if !e.savepoints || !touches(m) {
		return mark{}
	}
	before.subjects = e.subjects
	for i, guard := range e.subjects.guards {
		before.tokens[i] = maps.Clone(guard.(*Guard).tokens)
	}
	execute(e.t, e.database.db, fmt.Sprintf("SAVEPOINT s%d", len(e.path)))
	return before
}

func (e *enumeration) back(m move, before mark) {
	if !e.savepoints || !touches(m) {
		return
	}
	execute(e.t, e.database.db, fmt.Sprintf("ROLLBACK TO s%d", len(e.path)))
	execute(e.t, e.database.db, fmt.Sprintf("RELEASE s%d", len(e.path)))
	e.subjects = before.subjects
	for i, guard := range e.subjects.guards {
		guard.(*Guard).tokens = before.tokens[i]
	}
}

// again takes the path once more, with another order.
func (e *enumeration) again() world {
	e.ids++
	e.subjects = subjects{id: fmt.Sprintf("O-%d", e.ids), guards: e.subjects.guards}
	w := e.start
	for _, guard := range e.subjects.guards {
		if guard, ok := guard.(*Guard); ok {
			forget(guard)
		}
	}
	for _, m := range e.path {
		before := w
		w.take(m)
		_, _ = e.subjects.do(e.t.Context(), m, &before, &w) // was compared before
	}
	return w
}

// move has the subjects do what the world has done, and compares.
func (e *enumeration) move(m move, before, after *world, want expectation) {
	ctx := e.t.Context()
	known, err := e.subjects.do(ctx, m, before, after)
	got := factOf(known)
	if after.inMemory && errors.Is(err, errInFlight) {
		want.known.requestID = "" // it is not kept there
	}
	if got != want.known || !errors.Is(err, want.err) || (err == nil) != (want.err == nil) {
		e.fail("returned %+v, %v\nwant     %+v, %v", got, err, want.known, want.err)
	}
	if after.invoices > 1 {
		e.fail("%d invoices", after.invoices)
	}
	if e.database != nil && touches(m) {
		e.compare(after)
	}
}

// compare compares what the table has, and holds it to what is promised whatever the model says.
func (e *enumeration) compare(w *world) {
	o, err := e.database.Order(e.t.Context(), "", e.subjects.id)
	got, want := factOf(&o.Record), w.order.record()
	if o.State == StateFree {
		got = fact{} // the table may have what has become of the last attempt
	}
	if err != nil || o.State != w.order.state() || o.Attempts != w.order.attempts || got != want {
		e.fail("the order is %s, %d attempts, %+v, %v\nwant         %s, %d attempts, %+v", o.State, o.Attempts, got, err, w.order.state(), w.order.attempts, want)
	}
	if w.invoices > 0 && o.State == StateFree {
		e.fail("the order is free, and has an invoice")
	}
	if w.kept != "" && (o.State != StateCreated || string(o.Record.Invoice) != w.kept) {
		e.fail("the order is %s with %s, and was created with %s", o.State, o.Record.Invoice, w.kept)
	}
}

func (e *enumeration) fail(format string, args ...any) {
	e.t.Helper()
	var text strings.Builder
	for _, m := range e.path {
		fmt.Fprintf(&text, "\n\t%s %s", [...]string{"A", "B", "the lost request", ""}[m.who], m.action)
	}
	e.t.Fatalf("%s\n"+format, append([]any{text.String()}, args...)...)
}

// touches is whether a move changes or asks a guard.
func touches(m move) bool {
	switch m.action {
	case isSent, isCommitted, isRefused, isAnswered, isLost, isCreated, isRejected, losesOne, losesNone:
		return false
	default:
		return true
	}
}
