package orders_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/orders"
)

const (
	lease  = 100
	margin = 50
)

// A history is a row, what was done with it, and the time. The record of an attempt is its name.
type history struct {
	row orders.Row[string]
	now int64
}

func attempt(name string) int64 { return int64(name[0]) }

// after returns a history in which some things were done.
func after(t *testing.T, actions string) history {
	t.Helper()
	h := history{now: 1000}
	for action := range strings.SplitSeq(actions, ", ") {
		require.NoError(t, h.do(action).Err, action)
	}
	return h
}

// do does one thing, such as "begin a", and returns the answer.
func (h *history) do(action string) orders.Answer {
	h.now++
	verb, name, _ := strings.Cut(action, " ")
	name, gateway, elsewhere := strings.Cut(name, " at ")
	if !elsewhere {
		gateway = "here"
	}
	name, by, byOther := strings.Cut(name, " by ")
	if !byOther {
		by = "anna"
	}
	before := h.row
	shown := fmt.Sprint(h.row)
	var answer orders.Answer
	end := func(result orders.Result, bare bool) {
		h.row, answer = h.row.End(orders.End[string]{Gateway: gateway, Attempt: attempt(name), Result: result, Bare: bare, Record: name}, h.now)
	}
	finds := func(exists bool, record string) {
		isSame := len(h.row.Invoices) > 0 && h.row.Invoices[0].Record == record
		h.row, answer = h.row.Resolve(orders.Resolve[string]{
			Finding: orders.Finding{Exists: exists, By: by}, Attempt: attempt(name), Read: h.now, Waited: math.MaxInt64, Margin: margin,
			Bare: record == "", Same: isSame, Record: record,
		}, h.now)
	}
	switch verb {
	case "begin", "resubmit":
		h.row, answer = h.row.Begin(orders.Begin[string]{Gateway: gateway, Attempt: attempt(name), Lease: lease, Resubmit: verb == "resubmit", Record: name}, h.now)
	case "success":
		end(orders.Success, false)
	case "bare":
		end(orders.Success, true)
	case "undecided":
		end(orders.Undecided, false)
	case "nothing":
		end(orders.Nothing, false)
	case "wait":
		h.now += lease + margin
	case "pause":
		h.now += margin
	case "exists":
		finds(true, "")
	case "shown":
		finds(true, "invoice of "+name)
	case "other":
		finds(true, "other invoice of "+name)
	case "absent":
		finds(false, "")
	case "forget":
		if answer.Err = h.row.Forget(attempt(name), h.now); answer.Err == nil {
			h.row = orders.Row[string]{}
		}
	case "mark":
		h.row, answer = h.row.Mark(attempt(name), name, h.now)
	default:
		panic(action)
	}
	if fmt.Sprint(before) != shown {
		panic("the row before is changed: " + shown)
	}
	return answer
}

// String describes the order.
func (h *history) String() string {
	text := h.row.State(h.now).String()
	for _, list := range []struct {
		name     string
		attempts []orders.Attempt[string]
	}{{"", h.row.Invoices}, {"open", h.row.Unsettled()}} {
		var names []string
		for _, a := range list.attempts {
			names = append(names, a.Record)
		}
		if len(names) > 0 {
			text += strings.TrimRight("; "+list.name, " ") + " " + strings.Join(names, ", ")
		}
	}
	if h.row.Last != nil {
		text += "; last " + *h.row.Last
	}
	return text
}

func TestRow(t *testing.T) {
	t.Parallel()
	refusals := map[string]error{
		"not unknown ": orders.ErrNotUnknown, "too early ": orders.ErrTooEarly, "tried again ": orders.ErrTriedAgain,
		"other gateway ": orders.ErrOtherGateway, "not created ": orders.ErrNotCreated,
	}
	for name, row := range map[string]struct{ actions, want string }{
		"An order in flight is not begun again":                                   {"begin a, refused begin b, refused resubmit b", "in flight; open a"},
		"A statement that is repeated is granted once":                            {"begin a, begin a", "in flight; open a"},
		"A created order is not begun":                                            {"begin a, success a, refused begin b, refused resubmit b", "created; a"},
		"An unknown outcome makes it unknown":                                     {"begin a, undecided a, refused begin b", "unknown; open a"},
		"What proves nothing leaves it free":                                      {"begin a, nothing a", "free; last a"},
		"A process that dies leaves it unknown after the lease":                   {"begin a, wait, refused begin b", "unknown; open a"},
		"A resubmission that proves nothing leaves it unknown":                    {"begin a, undecided a, resubmit b, nothing b", "unknown; open a; last b"},
		"A resubmission that succeeds keeps the first attempt as evidence":        {"begin a, undecided a, resubmit b, success b", "created; b; open a"},
		"A late report of an attempt that proves nothing ends only its own doubt": {"begin a, wait, resubmit b, undecided b, nothing a", "unknown; open b; last a"},
		"A late report ends the doubt about an order":                             {"begin a, wait, nothing a", "free; last a"},
		"A late success is known while another has the lease":                     {"begin a, wait, resubmit b, success a", "in flight; a; open b"},
		"A second success is kept beside the first":                               {"begin a, wait, resubmit b, success b, success a", "created; b, a"},
		"A success that is reported twice is one":                                 {"begin a, success a, success a", "created; a"},
		"An unknown outcome that is reported twice is one":                        {"begin a, undecided a, undecided a", "unknown; open a"},
		"An unknown outcome of a created order is kept as evidence":               {"begin a, wait, resubmit b, success b, undecided a", "created; b; open a"},
		"A success of an order whose row is gone is recorded":                     {"success a", "created; a"},
		"An unknown outcome of an order whose row is gone is recorded":            {"undecided a", "unknown; open a"},
		"What proves nothing of an order whose row is gone is nothing":            {"nothing a", "free"},
		"An order whose row is gone is resolved as another":                       {"undecided a, pause, absent a", "free; last a"},
		"The same finding once more changes nothing":                              {"begin a, undecided a, exists a, exists a", "created; "},
		"The same finding that none exists once more changes nothing":             {"begin a, undecided a, wait, absent a, absent a", "free; last a"},
		"The opposite finding is refused":                                         {"begin a, undecided a, exists a, wait, not unknown absent a", "created; "},
		"The same finding about an order that was sent again is refused":          {"begin a, undecided a, wait, absent a, begin b, undecided b, tried again absent a", "unknown; open b; last a"},
		"The invoice can be added later":                                          {"begin a, undecided a, exists a, shown a", "created; invoice of a"},
		"An invoice that is known is not replaced":                                {"begin a, success a, not unknown shown a", "created; a"},
		"A success whose invoice is not known can have it added":                  {"begin a, bare a, shown a", "created; invoice of a"},
		"A late success says what the invoice is that a person found":             {"begin a, undecided a, exists a, success a", "created; a"},
		"A late success that says nothing of the invoice leaves the finding":      {"begin a, undecided a, shown a, bare a", "created; invoice of a"},
		"A late success is reported twice and known once":                         {"begin a, undecided a, shown a, success a, success a", "created; a"},
		"A finding that none exists is refused too early":                         {"begin a, undecided a, too early absent a", "unknown; open a"},
		"A finding that none exists counts from the lease of a process that died": {"begin a, wait, wait, absent a", "free; last a"},
		"A finding that none exists counts from the end of an attempt that ended": {"begin a, undecided a, pause, absent a", "free; last a"},
		"Of several attempts it is not known which one a person found":            {"begin a, undecided a, resubmit b, undecided b, shown b, success b", "created; invoice of b, b"},
		"A late success after a finding that none exists":                         {"begin a, undecided a, wait, absent a, success a", "created; a"},
		"A late unknown outcome after a finding that none exists is known":        {"begin a, undecided a, wait, absent a, undecided a", "free; last a"},
		"A first unknown outcome after a finding that none exists is known":       {"begin a, wait, wait, absent a, undecided a", "free; last a"},
		"A late unknown outcome that a finding has ended is none of the next":     {"begin a, wait, wait, absent a, begin b, undecided a, nothing b", "free; last b"},
		"A late unknown outcome after a finding that one exists is known":         {"begin a, undecided a, resubmit b, undecided b, exists b, undecided a", "created; "},
		"An unknown outcome that is reported twice changes nothing":               {"begin a, undecided a, wait, unchanged undecided a", "unknown; open a"},
		"An unknown outcome that is first reported late changes the record":       {"begin a, wait, resubmit b, undecided a, unchanged undecided a", "in flight; open a, b"},
		"A success that is reported beside a later attempt changes nothing":       {"begin a, wait, resubmit b, success a, unchanged success a, nothing b", "created; a"},
		"A rejection that is reported beside a later attempt changes nothing":     {"begin a, nothing a, begin b, unchanged nothing a", "in flight; open b; last a"},
		"A second invoice does not hide the first, whose text is not known":       {"begin a, wait, resubmit b, bare b, success a, unchanged success a", "created; b, a"},
		"A late success of one of several attempts says what a person found":      {"begin a, undecided a, resubmit b, undecided b, exists b, success a", "created; a"},
		"A late success says what the invoice is to which a person added it":      {"begin a, bare a, shown a, success a", "created; a"},
		"The same finding of another person changes nothing":                      {"begin a, undecided a, exists a, unchanged exists a by bob", "created; "},
		"The same finding with the same invoice changes nothing":                  {"begin a, undecided a, shown a, unchanged shown a, unchanged exists a", "created; invoice of a"},
		"A finding with another invoice is refused":                               {"begin a, undecided a, shown a, not unknown other a", "created; invoice of a"},
		"A finding about an earlier attempt is refused":                           {"begin a, undecided a, resubmit b, undecided b, tried again exists a", "unknown; open a, b"},
		"A finding about a free order is refused":                                 {"begin a, nothing a, not unknown exists a", "free; last a"},
		"A finding about an attempt that was refused since is refused":            {"begin a, undecided a, wait, absent a, begin b, nothing b, not unknown absent b", "free; last b"},
		"The same finding about an order that is free again is refused":           {"begin a, undecided a, wait, absent a, begin b, nothing b, not unknown absent a", "free; last b"},
		"Another gateway is refused":                                              {"begin a, success a, other gateway begin b at there", "created; a"},
		"A late report is recorded whichever gateway has the order now":           {"begin a, nothing a, success c at there", "created; c"},
		"A created order that is forgotten is sent again":                         {"begin a, success a, forget a, begin b", "in flight; open b"},
		"An unknown order is not forgotten":                                       {"begin a, undecided a, not created forget a", "unknown; open a"},
		"A created order with an attempt of unknown outcome is not forgotten":     {"begin a, wait, resubmit b, success b, not created forget b", "created; b; open a"},
		"An order that was sent again since it was read is not forgotten":         {"begin a, success a, forget a, begin b, success b, tried again forget a", "created; b"},
		"An order is forgotten once":                                              {"begin a, success a, forget a, not created forget a", "free"},
		"A late report of a forgotten order is recorded":                          {"begin a, wait, resubmit b, success b, nothing a, forget b, success a", "created; a"},
		"An order that was free is marked":                                        {"begin a, nothing a, mark b, refused begin c", "unknown; open b; last a"},
		"An order in flight is not marked":                                        {"begin a, mark b, success a", "created; a"},
		"A created order is not marked":                                           {"begin a, success a, mark b", "created; a"},
		"An unknown order is not marked again":                                    {"begin a, undecided a, mark b", "unknown; open a"},
		"A marked order is absent after the margin":                               {"mark a, too early absent a, pause, absent a, begin b", "in flight; open b; last a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history{now: 1000}
			for action := range strings.SplitSeq(row.actions, ", ") {
				var refusal error
				for text, err := range refusals {
					if rest, ok := strings.CutPrefix(action, text); ok {
						action, refusal = rest, err
					}
				}
				action, refused := strings.CutPrefix(action, "refused ")
				action, unchanged := strings.CutPrefix(action, "unchanged ")
				before := h.row
				answer := h.do(action)
				require.ErrorIs(t, answer.Err, refusal, action)
				if unchanged {
					assert.False(t, answer.Changed, action)
					assert.Equal(t, before, h.row, action)
				}
				if begins := strings.HasPrefix(action, "begin ") || strings.HasPrefix(action, "resubmit "); begins {
					assert.Equal(t, !refused && refusal == nil, answer.Granted, action)
				}
			}
			assert.Equal(t, row.want, h.String())
		})
	}
}

// In every history of an order there is at most one lease at a time, nothing that is known is forgotten, and an order
// whose invoice may exist is never free.
func TestRow_random(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	verbs := []string{"begin", "resubmit", "success", "bare", "undecided", "nothing", "wait", "exists", "shown", "absent"}
	for range 1500 {
		h, done := history{now: 1000}, ""
		granted, open, found, made := map[string]bool{}, map[string]bool{}, map[string]bool{}, false
		for range random.IntN(12) {
			verb, name := verbs[random.IntN(len(verbs))], string(rune('a'+random.IntN(4)))
			begins, finds := verb == "begin" || verb == "resubmit", slices.Contains(verbs[7:], verb)
			if finds {
				name = string(rune(h.row.Attempt))
			}
			if begins == granted[name] && !finds || finds && h.row.Attempt == 0 {
				continue
			}
			before := h.row.State(h.now)
			done += verb + " " + name + ", "
			answer := h.do(verb + " " + name)
			explain := fmt.Sprintf("seed %d: %s: %v", seed, done, &h)
			switch {
			case begins && answer.Granted:
				require.True(t, before == orders.Free || before == orders.Unknown && verb == "resubmit", explain)
				granted[name], open[name] = true, true
			case verb == "success" || verb == "bare":
				delete(open, name)
				made = true
			case verb == "nothing":
				delete(open, name)
			case verb == "undecided" && !made && !found[name]:
				open[name] = true
			case finds && answer.Changed:
				maps.Copy(found, open)
				clear(open)
			}
			again := h
			require.True(t, begins || finds || !again.do(verb+" "+name).Changed, "reported again: %s", explain)
			state := h.row.State(h.now)
			require.True(t, !made || state == orders.Created || state == orders.InFlight, explain)
			require.True(t, len(open) == 0 || state != orders.Free, explain)
			require.Equal(t, state == orders.Unknown || h.row.Held != nil, h.row.OpenSince != 0, explain)
			require.False(t, slices.ContainsFunc(h.row.Invoices[min(1, len(h.row.Invoices)):], func(a orders.Attempt[string]) bool {
				return a.Name == h.row.Invoices[0].Name
			}), explain)
		}
	}
}

// A finding that no invoice exists is accepted if the order was read after the margin, by the clock of the guard and by
// the clocks of the processes.
func TestRow_Resolve_bothClocks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		read, waited int64 // more than is needed
		early        bool
	}{{0, 0, false}, {-1, 1000, true}, {1000, -1, true}} {
		h := after(t, "begin a")
		h.now += 7
		h.do("undecided a") // 8 after it began
		_, answer := h.row.Resolve(orders.Resolve[string]{Attempt: attempt("a"), Margin: margin, Read: h.now + margin + tt.read, Waited: 8 + margin + tt.waited}, h.now+10*margin)
		assert.Equal(t, tt.early, errors.Is(answer.Err, orders.ErrTooEarly))
	}
}

// A refusal says when to read the order again, by the clock that has longer to wait, and who resolved it before.
func TestRow_Resolve_refusals(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second / time.Microsecond)
	begun := int64(1_800_000_000) * second
	var free orders.Row[string]
	held, _ := free.Begin(orders.Begin[string]{Attempt: 1, Lease: 60 * second}, begun)
	ended, _ := held.End(orders.End[string]{Attempt: 1, Result: orders.Undecided}, begun+2*second)
	marked, _ := free.Mark(1, "", begun)
	finding := orders.Resolve[string]{Finding: orders.Finding{By: "anna"}, Attempt: 1, Margin: 10 * second, ReadAt: orders.TimeAt(begun + 100*second)}
	for _, tt := range []struct {
		row          orders.Row[string]
		read, waited int64 // seconds after it began
		want         string
	}{
		{ended, 5, 12, "a request of the order may still be in transit: the order was read 7s too early: read it again at 2027-01-15T08:01:47Z, and look it up again"},
		{ended, 12, 9, "the order was read 3s too early: read it again at 2027-01-15T08:01:43Z"},
		{held, 65, 1000, "the order was read 5s too early: read it again at 2027-01-15T08:01:45Z"},
		{marked, 1000, 4, "the order was read 6s too early: read it again at 2027-01-15T08:01:46Z"},
	} {
		finding.Read, finding.Waited = begun+tt.read*second+1, tt.waited*second+1 // a part of a second counts as one
		_, answer := tt.row.Resolve(finding, begun+1000*second)
		assert.ErrorContains(t, answer.Err, tt.want)
	}
	finding.Read, finding.Waited = begun+12*second, 12*second
	absent, answer := ended.Resolve(finding, begun+13*second)
	require.NoError(t, answer.Err)
	_, answer = absent.Resolve(orders.Resolve[string]{Finding: orders.Finding{Exists: true, By: "bob"}, Attempt: 1}, begun+14*second)
	assert.EqualError(t, answer.Err, `the outcome of the order is not unknown: it is free, and "anna" found no invoice at 2027-01-15T08:00:13Z`)
}

// Two transitions of one row do not write into each other's lists.
func TestRow_End_twice(t *testing.T) {
	t.Parallel()
	h := after(t, "undecided a, undecided b, undecided c") // a list with room for one more
	one, other := h, h
	one.do("undecided d")
	other.do("undecided e")
	assert.Equal(t, "unknown; open a, b, c, d", one.String())
	assert.Equal(t, "unknown; open a, b, c, e", other.String())
}

// Nobody knows when the attempt of a marked order began.
func TestRow_Mark_begun(t *testing.T) {
	t.Parallel()
	h := after(t, "begin a, nothing a, mark b")
	assert.Zero(t, h.row.Begun)
	assert.Equal(t, h.now, h.row.Lease)
}

func TestRow_State_whenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	h := after(t, "begin a")
	assert.Equal(t, orders.InFlight, h.row.State(h.row.Lease-1))
	assert.Equal(t, orders.Unknown, h.row.State(h.row.Lease))
	assert.ErrorContains(t, h.do("begin b at there").Err, "it is known at here, and this client calls there")
}

// The time when it became known that an invoice exists is kept, whatever is found later.
func TestRow_Created(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"success a", "shown a"} {
		h := after(t, "begin a, undecided a, wait, "+first)
		known := h.now
		h.do("success b")
		assert.Equal(t, known, h.row.Created, first)
	}
}

// A late report of an earlier attempt is an outcome that is recorded then, and moves nothing else.
func TestRow_End_late(t *testing.T) {
	t.Parallel()
	h := after(t, "begin a, wait, resubmit b, undecided b")
	before := h.row
	h.do("pause")
	require.True(t, h.do("undecided a").Changed)
	assert.Equal(t, h.now, h.row.Ended)
	assert.Equal(t, []int64{before.Begun, before.Lease, before.OpenSince}, []int64{h.row.Begun, h.row.Lease, h.row.OpenSince})
}

// A guard whose callers name no gateway counts attempts all the same.
func TestRow_withoutGateway(t *testing.T) {
	t.Parallel()
	var r orders.Row[string]
	for attempt := range int64(3) {
		r, _ = r.Begin(orders.Begin[string]{Attempt: attempt + 1, Lease: 1}, attempt)
		r, _ = r.End(orders.End[string]{Attempt: attempt + 1}, attempt)
	}
	assert.Equal(t, 3, r.Attempts)
}
