package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/internal/testing/measure"
)

// What a response costs is bounded by its size, whatever its form. This test is not parallel, because it measures.
func TestCost(t *testing.T) {
	const megabyte = 1 << 20
	var members strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&members, `"%d":1,`, i)
	}
	record, name := "{"+strings.TrimSuffix(members.String(), ",")+"}", strings.Repeat("n", megabyte/4)
	ones := "[" + strings.Repeat("1,", megabyte/2) + "1]"
	deep := strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)
	encoded := strings.Repeat("%"+canary[:len(canary)-1], 2*megabyte/len(canary)) + canary
	for _, tt := range []struct {
		name, body string
		most       int // bytes for each byte of the body; SECURITY.md has the figures of texts
	}{
		{"a long name with many members under it", everycall.Enveloped(`{"` + name + `":` + record + `}`), 100},
		{"a long name with many elements under it", everycall.Enveloped(`{"` + name + `":` + ones + `}`), 30},
		{"many numbers where records are expected", everycall.Enveloped(ones), 30},
		{"rates by long names", everycall.Enveloped(`{"usd":{"` + name + `":` + record + `},"eur":{}}`), 100},
		{"many records without an amount", everycall.Enveloped("[" + strings.Repeat("{},", megabyte/4) + "{}]"), 40},
		{"a text in escapes", everycall.Enveloped(`["` + strings.Repeat(`\u0041`, megabyte/3) + `"]`), 14},
		{"a text with the key", everycall.Enveloped(`["` + canary + strings.Repeat("a", 2*megabyte) + `"]`), 3 * 14},
		{"a million levels, of which 10,000 are read", everycall.Enveloped(deep), 4},
		{"a message in which the key may be anywhere", `{"message":"` + encoded + `","result":[],"meta":{}}`, 8},
		{"a meta in which the key may be anywhere", `{"message":"no","result":[],"meta":["` + encoded + `"]}`, 8},
	} {
		for _, method := range []string{"ExchangeRates", "CreateInvoice"} {
			s := everycall.Named(method)
			c := answered(t, s.Status, tt.body)
			var result any
			var err error
			cost := measure.Allocated(func() { result, err = s.Do(t.Context(), c, everycall.Documented()) })
			assert.Empty(t, invariant.Broken(result, err))
			assert.Less(t, cost, uint64(measure.Slack())*uint64(tt.most*len(tt.body)), "%s: %s", method, tt.name)
		}
	}
}

// What a result of an undocumented shape costs is bounded by its text and by how
// many entries it has. This test is not parallel, because it measures.
func TestCost_entries(t *testing.T) {
	const mostTimes, mostEach = 14, 320 // SECURITY.md has these figures
	for _, tt := range []struct {
		name    string
		entries int
		coin    func(int) string
	}{
		{"the shortest", 99_990, shortName},
		{"too many", 200_000, func(i int) string { return fmt.Sprintf("%05x", i) }},
	} {
		if measure.Slack() > 1 && tt.entries < doc.MaxUndocumented {
			tt.entries /= 10 // the race detector is slow
		}
		for method, shapes := range wideResults(tt.entries, tt.coin) {
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

// wideResults returns results of so many members or elements, at all depths together, in the shapes that are accepted.
func wideResults(entries int, name func(i int) string) map[string][]string {
	list := func(begin, format, end string, each int) string {
		all := make([]string, entries/each)
		for i := range all {
			all[i] = strings.Replace(format, "N", name(i), 1)
		}
		return begin + strings.Join(all, ",") + end
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
