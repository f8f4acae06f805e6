package year

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/cryptogw/gateway/sqlguard"
	"github.com/cryptogw/gateway/sqlguard/export"
)

// export is the file of the invoices that were created in a period, by the gateway's clock.
func (s *service) export(from, until time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Builder{}
	text.WriteString("order_id,invoice_id,created_at,price,amount\n")
	first := sort.Search(len(s.all), func(n int) bool { return s.all[n].at.After(from.Add(-time.Hour)) }) // the clock is set by less
	for _, i := range s.all[first:] {
		if !i.at.Before(from) && i.at.Before(until) && !i.deleted {
			fmt.Fprintf(&text, "%s,inv-%d,%s,%s,%s\n", i.order, i.id, i.at.Format("2006-01-02T15:04:05Z"), i.price.StringFixed(2), i.amount.StringFixed(2))
		}
	}
	return text.String()
}

// A defect is what is wrong with a file. Before is the sound file that was exported before it.
type defect struct {
	name string
	of   func(file, before string) string
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// shifted moves every time of a file, and writes it in another form.
func shifted(d time.Duration, form string) func(file, before string) string {
	return func(file, _ string) string {
		return times.ReplaceAllStringFunc(file, func(text string) string {
			at, _ := time.Parse(time.RFC3339, text)
			return at.Add(d).Format(form)
		})
	}
}

// lines keeps the lines of a file for which keep is true, and the header.
func lines(keep func(n, of int) bool) func(file, before string) string {
	return func(file, _ string) string {
		all := strings.SplitAfter(file, "\n")
		kept := all[0]
		for n, line := range all[1:] {
			if keep(n, len(all)-1) {
				kept += line
			}
		}
		return kept
	}
}

func replaced(pairs ...string) func(file, before string) string {
	return func(file, _ string) string { return strings.NewReplacer(pairs...).Replace(file) }
}

// defects are those of a year's files.
func defects() []defect {
	return []defect{
		{"cut inside a row", func(file, _ string) string { return file[:len(file)*2/3-5] }},
		{"cut between two rows", lines(func(n, of int) bool { return n < of*2/3 })},
		{"without its first rows", lines(func(n, of int) bool { return n > of/3 })},
		{"without each tenth row", lines(func(n, _ int) bool { return n%10 != 3 })},
		{"another file, of the night before", func(_, before string) string { return before }},
		{"a header and no rows", lines(func(int, int) bool { return false })},
		{"empty", func(string, string) string { return "" }},
		{"a page of HTML", func(string, string) string { return "<html>\n<body>Please sign in</body>\n</html>\n" }},
		{"times without a zone", shifted(2*time.Hour, "2006-01-02T15:04:05")},
		{"times of another zone that are called UTC", shifted(2*time.Hour, "2006-01-02T15:04:05Z")},
		{"every row twice", func(file, _ string) string {
			_, rows, _ := strings.Cut(file, "\n")
			return file + rows
		}},
		{"order ids in capitals", replaced("order-", "ORDER-")},
		{"semicolons", replaced(",", ";")},
		{"a byte-order mark", func(file, _ string) string { return "\uFEFF" + file }},
		{"spaces after values", replaced(",", " ,")},
		{"amounts with more zeros", func(file, _ string) string {
			return regexp.MustCompile(`(?m)(\.\d\d)$`).ReplaceAllString(file, "${1}00")
		}},
	}
}

const (
	defectiveFiles = 0.25
	overlap        = 3 * 24 * time.Hour // of which a file is, each night
	mostNights     = 3                  // in which a file is exported
)

// A period is what a file is of. One that shows nothing, or too little, is exported again in the next nights.
type period struct {
	from, until time.Time
	nights      int // so far
}

// reconcile applies the file of the last days, at two in the morning, and those that are exported again.
func (p *shop) reconcile() {
	time.Sleep(2 * time.Hour)
	midnight := time.Now().Truncate(24 * time.Hour)
	p.periods = append(p.periods, period{from: midnight.Add(-overlap), until: midnight})
	var again []period
	for _, one := range p.periods {
		file := p.service.export(one.from, one.until)
		name, damaged := p.damage(file, one)
		if one.nights++; !p.apply(name, damaged, one) && one.nights < mostNights {
			again = append(again, one)
		}
		p.before = file
	}
	p.periods = again
}

// damage returns the file as it arrives, and the name of its defect, or "".
func (p *shop) damage(file string, one period) (name, damaged string) {
	random := rand.New(rand.NewPCG(p.world.seed<<8|uint64(one.nights), uint64(one.until.Unix())))
	over := one.until.After(p.world.begin.AddDate(0, 0, p.world.days))
	if random.Float64() > defectiveFiles || p.before == "" || over {
		return "", file
	}
	d := defects()[p.defective%len(defects())]
	p.defective++
	return d.name, d.of(file, p.before)
}

// apply reads a file and applies it. It reports whether there is no reason to export it again.
func (p *shop) apply(name, file string, one period) (settled bool) {
	counts := p.files[name]
	if counts == nil {
		counts = &fileTally{}
		p.files[name] = counts
	}
	counts.files++
	rows, err := export.CSV(strings.NewReader(file), export.Columns{OrderID: "order_id", InvoiceID: "invoice_id", CreatedAt: "created_at", Price: "price", Amount: "amount"})
	var found sqlguard.Reconciliation
	if err == nil {
		statement := sqlguard.Statement{From: one.from, Until: one.until, Rows: rows}
		found, err = p.guard.Reconcile(p.t.Context(), statement, sqlguard.ReconcileOptions{Apply: true, By: "job:export"})
	}
	if err != nil {
		counts.refused++
		return false
	}
	settled = true
	for _, d := range found.Differences {
		settled = settled && d.Class != sqlguard.ClassMissing
		switch {
		case d.Err != nil:
			p.isWrong("%s of %s: %v", d.Class, d.OrderID, d.Err)
		case d.Ended && d.Class == sqlguard.ClassExists:
			counts.exists++
			p.ended(d.OrderID, true)
		case d.Ended:
			counts.absent++
			p.ended(d.OrderID, false)
		case name == "":
			p.list(d)
		}
	}
	return settled
}

// list keeps what a sound file has shown, and compares it with what the gateway has done.
func (p *shop) list(d sqlguard.Difference) {
	want := map[string]sqlguard.Class{twice: sqlguard.ClassTwice, deleted: sqlguard.ClassMissing, altered: sqlguard.ClassAmount, byHand: sqlguard.ClassOnlyAtGateway}
	if p.service.seeded[d.OrderID] == "" || want[p.service.seeded[d.OrderID]] != d.Class {
		p.isWrong("%s is listed as %s", d.OrderID, d.Class)
		return
	}
	p.listed[d.OrderID] = true
}
