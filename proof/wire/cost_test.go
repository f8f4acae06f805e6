package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/internal/testing/measure"
)

// A result whose shape is not documented costs memory in proportion to
// its size. This test is not parallel, because it measures.
func TestCost_memoryIsLinear(t *testing.T) {
	members := make([]string, 1000)
	for i := range members {
		members[i] = fmt.Sprintf(`"%d":1`, i)
	}
	record := "{" + strings.Join(members, ",") + "}"
	name := strings.Repeat("n", 256<<10)
	ones := "[" + strings.Repeat("1,", 512<<10) + "1]"
	for _, tt := range []struct {
		name, result, pointer string
	}{
		{"a long name with many members under it", `{"` + name + `":` + record + `}`, ""},
		{"a long name with many elements under it", `{"` + name + `":` + ones + `}`, ""},
		{"many numbers where records are expected", ones, "/result"},
		{"rates by long names", `{"usd":{"` + name + `":` + record + `},"eur":{}}`, ""},
		{"many records without an amount", "[" + strings.Repeat("{},", 256<<10) + "{}]", "/result"},
	} {
		for _, s := range []everycall.Call{everycall.Named("ExchangeRates"), everycall.Named("Balance")} {
			got := leastAllocated(t, s, everycall.Enveloped(tt.result))
			assert.Less(t, got, uint64(40<<20), "%s: %s allocates %d bytes", tt.name, s.Name, got)
			result, err := s.Do(t.Context(), answered(t, 200, everycall.Enveloped(tt.result)), everycall.Documented())
			assert.Empty(t, invariant.Broken(result, err))
			require.Error(t, err, tt.name)
			assert.Less(t, len(err.Error()), 4<<10, tt.name)
			if tt.pointer != "" {
				assert.Equal(t, tt.pointer, pointerOf(err), tt.name)
			}
		}
	}
}

// What a result of an undocumented shape costs is bounded by its text and by how
// many entries it has. This test is not parallel, because it measures.
func TestCost_entries(t *testing.T) {
	const mostTimes, mostEach = 14, 320 // SECURITY.md has these figures
	for _, tt := range []struct {
		name         string
		entries      int
		coin, amount func(int) string
	}{
		{"the shortest", 99_990, shortName, func(int) string { return "1" }},
		{"names with escapes", 99_990, func(i int) string { return `\u0041` + shortName(i) }, strconv.Itoa},
		{"without an amount", 99_990, shortName, func(int) string { return "{}" }},
		{"too many", 200_000, func(i int) string { return fmt.Sprintf("%05x", i) }, func(int) string { return "1" }},
	} {
		if measure.Slack() > 1 && tt.entries < doc.MaxUndocumented {
			tt.entries /= 10 // the race detector is slow
		}
		for method, shapes := range wideResults(tt.entries, tt.coin, tt.amount) {
			for _, result := range shapes {
				s, body := everycall.Named(method), everycall.Enveloped(result)
				c := answered(t, s.Status, body, gateway.WithObserver(gateway.Observer{}))
				var err error
				cost := measure.Allocated(func() { _, err = s.Do(t.Context(), c, everycall.Documented()) })
				most := mostTimes*len(body) + mostEach*min(tt.entries, doc.MaxUndocumented)
				assert.Less(t, cost, uint64(measure.Slack())*uint64(most), "%s, %s, %.40s: %.100v", method, tt.name, result, err)
				if tt.entries > doc.MaxUndocumented {
					assert.ErrorContains(t, causeOf(err), "/result: has more than 100000 members and elements", "%.40s", result)
				}
			}
		}
	}
}

// A text in escapes, and one with the key, cost more than others. This test is not
// parallel, because it measures.
func TestCost_texts(t *testing.T) {
	const size = 2 << 20
	for name, tt := range map[string]struct {
		text      string
		mostTimes int // SECURITY.md has these figures
	}{
		"in escapes":   {strings.Repeat(`\u0041`, size/len(`\u0041`)), 14},
		"with the key": {canary + strings.Repeat("a", size), 3 * 14},
	} {
		body := everycall.Enveloped(`["` + tt.text + `"]`)
		for _, method := range []string{"Balance", "ExchangeRates", "CreateInvoice"} {
			s := everycall.Named(method)
			c := answered(t, s.Status, body)
			cost := measure.Allocated(func() { _, _ = s.Do(t.Context(), c, everycall.Documented()) })
			assert.Less(t, cost, uint64(measure.Slack())*uint64(tt.mostTimes*len(body)), "%s: a text %s", method, name)
		}
	}
}

// What depth costs is bounded, though the place of the error is deep: the text, whose length is
// not announced here, takes up to three times its size, and the tree of 10,000 levels less than 1 MiB. This test is not parallel, because it
// measures.
func TestCost_depth(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)
	for _, s := range everycall.All() {
		got, most := leastAllocated(t, s, everycall.Enveloped(deep)), uint64(measure.Slack())*(3*uint64(len(deep))+1<<20)
		assert.Less(t, got, most, "%s allocates %d bytes", s.Name, got)
	}
}

// To find the key in a message or meta costs no more, however large these are. This test
// is not parallel, because it measures.
func TestCost_envelope(t *testing.T) {
	encoded := strings.Repeat("%"+canary[:len(canary)-1], 2<<20/len(canary))
	for name, envelope := range map[string]string{
		"a message": `{"message":"` + encoded + canary + `","result":[],"meta":{}}`,
		"a meta":    `{"message":"no","result":[],"meta":["` + encoded + canary + `"]}`,
	} {
		c := answered(t, 200, envelope)
		var err error
		cost := measure.Allocated(func() { _, err = c.Withdrawal(t.Context(), everycall.WithdrawalID) })
		assert.Empty(t, invariant.Broken(nil, err))
		assert.Less(t, cost, uint64(measure.Slack())*uint64(8*len(envelope)), "%s: %.100v", name, err)
	}
}

// leastAllocated is how many bytes a call allocates for a response: the least of three times.
func leastAllocated(t *testing.T, s everycall.Call, body string) uint64 {
	t.Helper()
	c, least := answered(t, s.Status, body), ^uint64(0)
	for range 3 {
		least = min(least, measure.Allocated(func() { _, _ = s.Do(t.Context(), c, everycall.Documented()) }))
	}
	return least
}

// pointerOf is the place of what a call cannot decode.
func pointerOf(err error) string {
	wrong, ok := errors.AsType[*gateway.DecodeError](causeOf(err))
	if !ok {
		return err.Error()
	}
	return wrong.Pointer
}

// wideResults returns results of so many members or elements, at all depths together, in the
// shapes that are accepted. The amount of coin i is amount(i), its name name(i).
func wideResults(entries int, name, amount func(i int) string) map[string][]string {
	list := func(begin, format, end string, each int) string {
		var all strings.Builder
		for i := range entries / each {
			all.WriteByte(',')
			for _, b := range []byte(format) {
				switch b {
				case '1':
					all.WriteString(amount(i))
				case '2':
					all.WriteString(amount(i + 1))
				case 'N':
					all.WriteString(name(i))
				default:
					all.WriteByte(b)
				}
			}
		}
		return begin + strings.TrimPrefix(all.String(), ",") + end
	}
	half := list(`{`, `"N":1`, `}`, 2)
	return map[string][]string{
		"Balance": {
			list(`{`, `"N":1`, `}`, 1), list(`{`, `"N":{"amount":1}`, `}`, 2),
			list(`[`, `{"amount":1}`, `]`, 2), list(`[`, `{"coin":"N","amount":1}`, `]`, 3),
		},
		"ExchangeRates": {
			list(`{`, `"N":{"usd":1,"eur":2}`, `}`, 3), list(`[`, `{"coin":"N","usd":1,"eur":2}`, `]`, 4),
			list(`[`, `{"coin":"N","usd":1}`, `]`, 3), list(`[{"coin":"A","usd":1},`, `{"coin":"N"}`, `]`, 2),
			`{"usd":` + half + `,"eur":` + half + `}`, `{"usd":` + list(`{`, `"N":1`, `}`, 1) + `,"eur":{}}`,
		},
		"CreateInvoice": {list(`{`, `"N":1`, `}`, 1), list(`[`, `1`, `]`, 1), list(`[`, `{"N":1}`, `]`, 2)},
	}
}

// shortName returns one of the shortest names for an index.
func shortName(i int) string {
	const letters = "ABCDEFGHIJKLMOPQRSTUVWXYZ03456789!#$%&'()*+-./;<=>?@^_`|~abcdefghijklmnopqrstuvwxyz"
	name := letters[i%len(letters)]
	if i < len(letters) {
		return string(name)
	}
	return string(name) + shortName(i/len(letters)-1)
}
