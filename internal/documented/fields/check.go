package fields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Difference is a place where a record differs from its table.
type Difference struct {
	Kind      string   // one of the kinds below
	Statement string   // of docs/interface.md
	Path      []string // the names of the members that lead to its place
	Detail    string   // what the record has instead, if that is not obvious
}

// Kinds of a difference.
const (
	UnknownField  = "unknown field"  // not in the table
	MissingField  = "missing field"  // only in the table
	OtherType     = "other type"     // another JSON type
	OtherFormat   = "other format"   // text of another format
	UnknownStatus = "unknown status" // of a withdrawal
	Mismatch      = "mismatch"       // an identifier is not that of the record beside it
)

// Check reports the differences of a record, whose numbers are of type [json.Number], from
// the table. If the record is not documented, only the names are compared.
func (t *Table) Check(record map[string]any, report func(Difference)) {
	t.check(record, t.Documented, report)
}

func (t *Table) check(record map[string]any, documented bool, report func(Difference)) {
	for _, f := range t.Fields {
		value, there := record[f.Name]
		at := []string{f.Name}
		switch {
		case there:
			f.check(value, documented, func(d Difference) {
				d.Path = append(at, d.Path...)
				report(d)
			})
		case documented:
			report(Difference{MissingField, f.Statement, at, ""})
		}
		if documented && !equal(record, f) {
			report(Difference{Mismatch, f.Statement, at, "is not " + strings.Join(f.Equals, ".")})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(record)) {
		if _, known := t.Field(name); !known {
			report(Difference{UnknownField, t.Others, []string{name}, KindOf(record[name])})
		}
	}
}

// check reports the differences of a member from its field.
func (f Field) check(value any, documented bool, report func(Difference)) {
	kind := KindOf(value)
	if documented && kind != f.Kind {
		report(Difference{OtherType, f.Statement, nil, kind + ", not " + f.Kind})
		return
	}
	if inner, isObject := value.(map[string]any); isObject && f.Record != nil {
		f.Record.check(inner, documented, report)
	}
	text, isText := value.(string)
	if !documented || !isText || f.Format == nil || f.Format.matches(text) {
		return
	}
	detail := f.Format.not
	if detail == "" {
		detail = fmt.Sprintf("%.64q", text)
	}
	report(Difference{f.Format.kind, f.Statement, nil, detail})
}

// equal reports whether a member of a record equals the member that docs/interface.md
// requires it to equal, or one of the two is missing.
func equal(record map[string]any, f Field) bool {
	a, b := TextAt(record, f.Name), TextAt(record, f.Equals...)
	return f.Equals == nil || a == "" || b == "" || a == b
}

// TextAt returns the text of the member at a path, or "" if there is none.
func TextAt(value any, path ...string) string {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	text, _ := value.(string)
	return text
}

// Parse decodes JSON, with numbers as written. It returns false unless the text is
// exactly one JSON value.
func Parse(text []byte) (value any, ok bool) {
	from := json.NewDecoder(bytes.NewReader(text))
	from.UseNumber()
	if from.Decode(&value) != nil {
		return nil, false
	}
	_, err := from.Token()
	return value, err == io.EOF
}

var integer = regexp.MustCompile(`^-?\d+$`)

// KindOf returns the JSON type of a value, or "integer".
func KindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if integer.MatchString(value.String()) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}
