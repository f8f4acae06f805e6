package year

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	page  = "../../docs/year.md"
	begin = "<!-- made by the command above -->\n"
	end   = "<!-- end -->\n"
)

// markdown returns the tables of the shops, in the order of merchants.
func markdown(shops []*shop) string {
	text := fmt.Sprintf("%s orders of each merchant, %d days, seed %d, on %s:\n\n", thousands(*orders), *days, *seed, time.Now().Format(time.DateOnly)) +
		"| the merchant has | responses lost | unknown orders | ended: it exists | ended: it does not | left for a person | ended without one | half of them within | 99 % within | wrong findings | orders doubled |\n" +
		strings.Repeat("|---", 11) + "|\n"
	for i, m := range merchants() {
		text += shops[i].row(m.name)
	}
	exporting, alone := shops[0], shops[len(shops)-1]
	text += fmt.Sprintf("\nAt the gateway of the first merchant, %d orders were doubled, deleted, altered or made by hand: the reconciliations list %d of them, and no other order.\n",
		len(exporting.service.seeded), len(exporting.listed))
	text += fmt.Sprintf("\nOf the %s orders that are left to the last merchant, %s had reached the gateway: one search of its log for the request id of `Order.Record` finds each of these, and nothing else. The other %d never arrived, and the search finds nothing.\n",
		thousands(len(alone.pending)), thousands(alone.found), alone.never)
	return text + exporting.filesTable()
}

func (p *shop) row(name string) string {
	share, half, most := "–", "–", "–"
	if len(p.ages) > 0 {
		slices.Sort(p.ages)
		share = fmt.Sprintf("%.2f %%", 100-100*float64(len(p.pending))/float64(len(p.doubtful)))
		half, most = hours(p.ages[len(p.ages)/2]), hours(p.ages[len(p.ages)*99/100])
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %d | %d |\n", name, thousands(len(p.service.lost)), thousands(len(p.doubtful)),
		thousands(p.exists), thousands(p.absent), thousands(len(p.pending)), share, half, most, len(p.wrong), p.doubled)
}

// filesTable is what became of the files of the first merchant.
func (p *shop) filesTable() string {
	text := "\n| the file is | files | refused | orders ended: they exist | ended: they do not |\n|---|---|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		f, title := p.files[name], name
		if name == "" {
			title = "sound"
		}
		text += fmt.Sprintf("| %s | %d | %d | %s | %s |\n", title, f.files, f.refused, thousands(f.exists), thousands(f.absent))
	}
	return text
}

func hours(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	default:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// publish writes the tables into the page.
func publish(t *testing.T, tables string) {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	before, rest, begun := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatal(page + " has no marks for the tables")
	}
	must(t, os.WriteFile(page, []byte(before+begin+tables+end+after), 0o644))
}
