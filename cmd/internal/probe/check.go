package probe

import (
	"fmt"
	"strings"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/documented/fields"
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
func (c *checker) result(items []item, of *fields.Table) {
	for _, item := range items {
		object, isObject := item.value.(map[string]any)
		switch {
		case isObject:
			of.Check(object, func(d fields.Difference) {
				at := item.at
				for _, name := range d.Path {
					at = at.member(name)
				}
				c.add(d.Kind, d.Statement, at, d.Detail)
			})
		case of.Documented:
			c.add(fields.OtherType, of.Statement, item.at, fields.KindOf(item.value)+", not object")
		}
	}
}

// envelope checks the envelope of a result. The Response does not contain the
// other members of the envelope; the client reports them as drift.
func (c *checker) envelope(r gateway.Response, drifts []gateway.Drift) {
	root := place{}
	switch {
	case r.Message == "":
		c.add(fields.MissingField, "I-39", root.member("message"), "or no text")
	case r.Message != documentedMessage:
		c.add(otherMessage, "I-40", root.member("message"), fmt.Sprintf("%.64q", r.Message))
	}
	if value, ok := fields.Parse(r.Meta); ok {
		c.result([]item{{root.member("meta"), value}}, meta)
	} else {
		c.add(fields.MissingField, "I-42", root.member("meta"), "")
	}
	for _, d := range drifts {
		inResult := d.Pointer == "/result" || strings.HasPrefix(d.Pointer, "/result/")
		if !inResult && d.Kind != gateway.DriftUnexpectedValue { // of a message or meta, which is checked above
			c.add(string(d.Kind), fields.NotStated, place{d.Pointer, d.Pointer}, "")
		}
	}
}
