package probe

import (
	"fmt"
	"strings"

	"github.com/cryptogw/gateway/internal/documented/fields"
)

// A DifferenceError reports that a gateway differs from docs/interface.md.
type DifferenceError struct{ Differences int }

// Error returns one line.
func (e *DifferenceError) Error() string {
	return "the gateway differs from the interface: " + count(e.Differences, "difference")
}

// Err returns what is wrong: a [*DifferenceError], else an error for responses that
// could not be read, or nil.
func (r Report) Err() error {
	switch {
	case len(r.Verdict.NotSo) > 0:
		return &DifferenceError{len(r.Verdict.NotSo)}
	case r.Unread > 0:
		return fmt.Errorf("%s could not be read", count(r.Unread, "response"))
	default:
		return nil
	}
}

// newReport sums calls up.
func newReport(url string, calls []Call) Report {
	r := Report{URL: url, Calls: calls, Verdict: Verdict{So: []Line{}, NotSo: []Line{}, Found: []Line{}, NotAsked: []Line{}}}
	for _, call := range calls {
		r.Findings += len(call.Findings)
		if call.Error != "" {
			r.Unread++
		}
		r.Verdict.add(call)
	}
	return r
}

// add adds the lines about a call.
func (v *Verdict) add(call Call) {
	line := func(statements, text string) Line { return Line{statements, call.Route, text} }
	if call.Skipped != "" || call.refused {
		v.NotAsked = append(v.NotAsked, line("", call.Skipped+call.Error))
		return
	}
	differences := 0
	for _, f := range call.Findings {
		if f.Statement == fields.NotStated || f.Statement == "" {
			v.Found = append(v.Found, line(f.Statement, f.String()))
			continue
		}
		differences++
		v.NotSo = append(v.NotSo, line(f.Statement, f.String()))
	}
	q, readable := call.question, call.Error == ""
	switch {
	case !readable && (q.of.Documented || call.Shape == nil) && differences == 0:
		v.NotSo = append(v.NotSo, line("I-7, I-38", call.Error))
	case !readable && !q.of.Documented && call.Shape != nil:
		v.Found = append(v.Found, line(q.body, call.Shape.String()+"; the client cannot read it: "+call.Error))
	case readable && differences == 0:
		v.So = append(v.So, line(q.so, q.soText))
	}
	if readable && q.body != "" {
		v.Found = append(v.Found, line(q.body, call.Shape.String()))
	}
	if readable && q.public {
		v.Found = append(v.Found, line("I-34", "needs no key"))
	}
}

// String returns the line as text.
func (l Line) String() string {
	text := l.Route + ": " + l.Text
	if l.Statements != "" {
		text += " (" + l.Statements + ")"
	}
	return text
}

// String returns the verdict as text, with what needs attention last.
func (v Verdict) String() string {
	var text strings.Builder
	for _, part := range []struct {
		title string
		lines []Line
	}{
		{"Documented and so", v.So},
		{"Not stated, and found to be", v.Found},
		{"Could not be asked", v.NotAsked},
		{"Documented and not so", v.NotSo},
	} {
		fmt.Fprintf(&text, "\n%s: %d\n", part.title, len(part.lines))
		for _, l := range part.lines {
			fmt.Fprintf(&text, "  %s\n", l)
		}
	}
	return text.String()
}
