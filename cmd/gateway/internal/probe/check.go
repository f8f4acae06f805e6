package probe

import (
	"fmt"
	"strings"

	"github.com/cryptogw/gateway"
)

// maxFindings is the largest number of findings about one response.
const maxFindings = 100

// A checker collects the differences of a response from docs/interface.md. A
// difference that repeats in the records of a list is one finding with a count.
type checker struct {
	findings []Finding
	index    map[[3]string]int // of the findings
}

func newChecker() *checker {
	return &checker{findings: []Finding{}, index: map[[3]string]int{}}
}

func (c *checker) add(kind, statement string, at place, detail string) {
	key := [3]string{kind, at.all, detail}
	if i, seen := c.index[key]; seen {
		c.findings[i].Count++
		return
	}
	if len(c.findings) == maxFindings {
		return
	}
	c.index[key] = len(c.findings)
	c.findings = append(c.findings, Finding{kind, statement, at.pointer, detail, 1})
}

// result checks the records of a result.
func (c *checker) result(items []item, of *table) {
	for _, item := range items {
		object, isObject := item.value.(map[string]any)
		switch {
		case isObject:
			c.record(item.at, object, of, of.shown)
		case of.shown:
			c.add(otherType, of.statement, item.at, kindOf(item.value)+", not object")
		}
	}
}

// record compares a record with its table. If the record is not documented, only
// the names are compared.
func (c *checker) record(at place, record map[string]any, of *table, shown bool) {
	for _, f := range of.fields {
		value, there := record[f.name]
		switch {
		case there:
			c.field(at.member(f.name), value, f, shown)
		case shown:
			c.add(missingField, f.statement, at.member(f.name), "")
		}
		if shown && !equal(record, f) {
			c.add(mismatch, f.statement, at.member(f.name), "is not "+strings.Join(f.equals, "."))
		}
	}
	for _, name := range names(record) {
		if _, known := of.field(name); !known {
			c.add(unknownField, of.others, at.member(name), kindOf(record[name]))
		}
	}
}

// field compares a member with its field in the table.
func (c *checker) field(at place, value any, f field, shown bool) {
	kind := kindOf(value)
	if shown && kind != f.kind {
		c.add(otherType, f.statement, at, kind+", not "+f.kind)
		return
	}
	if inner, isObject := value.(map[string]any); isObject && f.record != nil {
		c.record(at, inner, f.record, shown)
	}
	text, isText := value.(string)
	if !shown || !isText || f.format == nil || f.format.text.MatchString(text) {
		return
	}
	detail := f.format.not
	if detail == "" {
		detail = fmt.Sprintf("%.64q", text)
	}
	c.add(f.format.kind, f.statement, at, detail)
}

// equal reports whether a member of a record equals the member that docs/interface.md
// requires it to equal, or one of the two is missing.
func equal(record map[string]any, f field) bool {
	a, b := textAt(record, f.name), textAt(record, f.equals...)
	return f.equals == nil || a == "" || b == "" || a == b
}

// envelope checks the envelope of a result. The Response does not contain the
// other members of the envelope; the client reports them as drift.
func (c *checker) envelope(r gateway.Response, drifts []gateway.Drift) {
	root := place{}
	switch {
	case r.Message == "":
		c.add(missingField, "I-39", root.member("message"), "or no text")
	case r.Message != "Operation was successful.":
		c.add(otherMessage, "I-40", root.member("message"), fmt.Sprintf("%.64q", r.Message))
	}
	if value, ok := parse(r.Meta); ok {
		c.result([]item{{root.member("meta"), value}}, meta)
	} else {
		c.add(missingField, "I-42", root.member("meta"), "")
	}
	for _, d := range drifts {
		inResult := d.Pointer == "/result" || strings.HasPrefix(d.Pointer, "/result/")
		if !inResult && d.Kind != gateway.DriftUnexpectedValue { // of a message or meta, which is checked above
			c.add(string(d.Kind), notStated, place{d.Pointer, d.Pointer}, "")
		}
	}
}
