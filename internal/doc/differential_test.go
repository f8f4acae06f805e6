package doc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/strictjson"
)

const diffCanary = "CANARY-5f1d8e0b7a64c932"

type dState string

func (s dState) Known() bool { return s == "NEW" || s == "DONE" }

type dPart struct {
	ID    string          `json:"id" check:"nonempty"`
	Price decimal.Decimal `json:"price"`
	At    time.Time       `json:"at,omitzero"`
}

type dWhole struct {
	ID     string          `json:"id" check:"id"`
	Name   string          `json:"name"`
	Price  decimal.Decimal `json:"price"`
	Count  int             `json:"count"`
	Open   bool            `json:"open"`
	State  dState          `json:"state"`
	At     time.Time       `json:"at,omitzero"`
	PartID string          `json:"partId" check:"equals part.id"`
	Part   dPart           `json:"part"`
}

var (
	oldRecord = strictjson.RecordOf[dWhole]()
	newRecord = doc.RecordOf[dWhole]()
)

// An outcome is what a reader makes of a text.
type outcome struct {
	value  string // that was read, for comparison
	none   bool   // an empty array where a record is expected
	error  string // pointer, value, error
	syntax bool
	notes  []string // drift
	skips  []string
	noted  int
}

func withOld(text []byte, how, id string) (o outcome) {
	var d strictjson.Decoder
	notes := &strictjson.Notes{}
	keys := redact.New(redact.NewSecret(diffCanary))
	d.Reset(text, strictjson.Options{Redactor: keys, Notes: notes, ExpectID: id})
	switch how {
	case "one":
		r := strictjson.One(oldRecord)(&d)
		o.none = d.Content() == strictjson.NoRecord
		o.value = fmt.Sprintf("%+v", deref(r))
	case "many":
		o.value = fmt.Sprintf("%+v", strictjson.Many(oldRecord, "/name")(&d))
	case "either":
		o.value = fmt.Sprintf("%+v", strictjson.OneOrMany(oldRecord, "/name")(&d))
	case "raw":
		raw := strictjson.Raw(&d)
		if d.Err() == nil {
			n := strictjson.NodeOf(&d, raw)
			o.value = string(raw) + describeOld(n)
		}
	}
	d.EndDocument()
	d.NoteError()
	if e := d.Err(); e != nil {
		o.error, o.syntax, o.value = e.Pointer+" "+e.Reason(), e.Syntax, ""
	}
	for _, n := range notes.All() {
		o.notes = append(o.notes, fmt.Sprintf("%s %s", n.Pointer, n.Reason))
	}
	for _, l := range d.LeftOut() {
		o.skips = append(o.skips, l.Pointer+" "+l.Reason()+" "+strings.Join(l.Names, ","))
	}
	return o
}

func withNew(d *doc.Doc, text []byte, how, id string) (o outcome) {
	wrong := d.Parse(text, redact.New(redact.NewSecret(diffCanary)))
	n := d.Root()
	if wrong == nil {
		switch how {
		case "one":
			var r *dWhole
			r, wrong = newRecord.One(n, id)
			if wrong != nil && errors.Is(wrong.Err, doc.ErrNoRecord) {
				wrong, o.none = nil, true
			}
			o.value = fmt.Sprintf("%+v", deref(r))
		case "many":
			var r []dWhole
			r, wrong = newRecord.Many(n)
			o.value = fmt.Sprintf("%+v", r)
		case "either":
			var r []dWhole
			if id == "" {
				r, wrong = newRecord.OneOrMany(n)
			}
			o.value = fmt.Sprintf("%+v", r)
		case "raw":
			if wrong = n.CheckSize(); wrong == nil {
				o.value = string(n.JSON()) + describeNew(n)
			}
		}
	}
	d.NoteError(wrong)
	if wrong != nil {
		o.error, o.syntax, o.value = wrong.Pointer+" "+wrong.Reason(), wrong.Syntax, ""
	}
	for _, note := range d.Notes() {
		if note.Kind == doc.Skipped {
			name := note.Record.Member("name").Text()
			o.skips = append(o.skips, note.Pointer+" "+note.Reason()+" "+redact.Truncate(name, 256))
		}
		if !note.Again {
			o.notes = append(o.notes, fmt.Sprintf("%s %s", note.Pointer, note.Reason()))
		}
	}
	return o
}

func deref(r *dWhole) dWhole {
	if r == nil {
		return dWhole{}
	}
	return *r
}

func describeOld(n strictjson.Node) string {
	var b strings.Builder
	for s := range n.Scalars() {
		amount, err := s.Amount()
		fmt.Fprintf(&b, "\n%s|%s|%s|%s|%v|%v", s.Pointer(), s.Name(), s.Text(), s.Scalar(), err, slices.Collect(s.Names()))
		if err == nil {
			b.WriteString(amount.String())
		}
	}
	return b.String()
}

func describeNew(n doc.Node) string {
	var b strings.Builder
	for s := range n.All() {
		if k := s.Kind(); k != '"' && k != '0' {
			continue
		}
		amount, err := s.Amount()
		fmt.Fprintf(&b, "\n%s|%s|%s|%s|%v|%v", s.Pointer(), s.Name(), s.Text(), s.Scalar(), err, slices.Collect(s.Names()))
		if err == nil {
			b.WriteString(amount.String())
		}
	}
	return b.String()
}

func compare(t *testing.T, d *doc.Doc, text []byte, how, id string) {
	t.Helper()
	if how != "one" {
		id = ""
	}
	if strings.Trim(string(text), " \t\r\n") == "" {
		return // the old reader says so of a whole document only
	}
	before, after := withOld(text, how, id), withNew(d, text, how, id)
	if after.syntax {
		// The old reader stops at the first error of any kind, in the order of the text.
		require.NotEmpty(t, before.error, "%s: only the new reader refuses: %s", how, after.error)
		if before.syntax { // jsontext has other words for some errors, by how it is called
			pointer, _, _ := strings.Cut(after.error, " ")
			require.True(t, strings.HasPrefix(before.error, pointer+" "), "%s: %q and %q", how, before.error, after.error)
		}
		return
	}
	slices.Sort(before.notes)
	slices.Sort(after.notes)
	if how == "raw" && strings.Contains(string(text), diffCanary[:4]) {
		before.value, after.value = "", "" // the old reader looks at what is left of names after redaction
	}
	require.Equal(t, before, after, "%s: %s", how, text)
}

func diffSeeds() []string {
	whole := `{"id":"w-1","name":"A whole","price":"1.50","count":20,"open":true,"state":"DONE","at":"2024-01-02T03:04:05Z","partId":"p-1","part":{"id":"p-1","price":"2.5","at":"2024-01-02T03:04:05Z"}}`
	all := []string{
		``, ` `, "\ufeff", `null`, `[]`, `{}`, `"x"`, `1`, `[1,"2",{"amount":3}]`, `{"a":{"b":[{"c":null}]}}`, `{"a":`, `[[[[`,
		whole, "[" + whole + "]", "[" + whole + "," + whole + "," + whole + "]", "[" + whole + ",1," + whole + `,{"id":"q"},null]`,
		`{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, `{}x`, `{}{}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`,
		`{"` + diffCanary + `":1,"\u0043` + diffCanary[1:] + `":nope}`, `{"` + diffCanary + `":{"` + diffCanary + `":"` + diffCanary + `"}}`,
		`{"a/b":{"c~d":[{"":1}]}}`, strings.Repeat(`{"a":`, 50) + strings.Repeat("[", 50), "[" + strings.Repeat(`{"v":1},`, 70) + "1]",
	}
	for _, edit := range [][2]string{
		{`"1.50"`, `1e64`}, {`"1.50"`, `"1e-99999999999"`}, {`"1.50"`, `null`}, {`"1.50"`, `""`}, {`"1.50"`, `15e2`}, {`"1.50"`, `"` + strings.Repeat("9", 200) + `"`},
		{`20`, `20.0`}, {`20`, `2e1`}, {`20`, `9999999999999999999`}, {`20`, `-0`}, {`true`, `"true"`}, {`true`, `false`}, {`"w-1"`, `""`}, {`"w-1"`, `7`},
		{`"2024-01-02T03:04:05Z"`, `"2024-01-02 03:04:05"`}, {`"2024-01-02T03:04:05Z"`, `"0000-01-01 00:00:00+01:00"`}, {`"2024-01-02T03:04:05Z"`, `{}`},
		{`"p-1"`, `"p-2"`}, {`"DONE"`, `"\u0044ONE"`}, {`"DONE"`, `"HELD"`}, {`"DONE"`, `""`}, {`"A whole"`, `"` + diffCanary + `"`}, {`"A whole"`, `"` + strings.Repeat("é", 300) + `"`},
		{`"name"`, `"Name"`}, {`"name"`, `"id"`}, {`"price":"1.50",`, ``}, {`"price":"1.50"`, `"price":"1.50","extra":{"x":[1]}`}, {`{"id":"p-1"`, `{"id":"p-1","more":1`},
		{`"part":{`, `"part":[{`}, {`}}`, `}`}, {`}}`, `}}}`}, {`}}`, `},"x":{"y":1,"y":2}}`},
	} {
		edited := strings.Replace(whole, edit[0], edit[1], 1)
		all = append(all, edited, "["+whole+","+whole+","+edited+","+edited+"]", "["+edited+"]")
	}
	return all
}

// Both readers read the same records, with the same errors and notes.
func FuzzDifferentialRecord(f *testing.F) {
	for _, seed := range diffSeeds() {
		f.Add([]byte(seed), "w-1")
		f.Add([]byte(seed), "")
	}
	f.Fuzz(func(t *testing.T, text []byte, id string) {
		d := &doc.Doc{}
		for _, how := range []string{"one", "many", "either"} {
			compare(t, d, text, how, id)
		}
	})
}

// Both readers find the same values in a text of any form.
func FuzzDifferentialNode(f *testing.F) {
	for _, seed := range diffSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { compare(t, &doc.Doc{}, text, "raw", "") })
}

// Both readers treat a value of one member alike, in a record and in a list.
func FuzzDifferentialMember(f *testing.F) {
	names := []string{"id", "name", "price", "count", "open", "state", "at", "partId", "part"}
	for i := range names {
		for _, value := range []string{`"x"`, `"1.5"`, `1.5`, `-1e3`, `null`, `true`, `{}`, `[]`, `""`, `"2024-01-02"`, `{"id":"p-1","price":1}`, `"\u0031"`, ``} {
			f.Add(byte(i), value)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, value string) {
		name := names[int(which)%len(names)]
		values := map[string]string{
			"id": `"w-1"`, "name": `"A"`, "price": `"1.50"`, "count": `20`, "open": `true`, "state": `"DONE"`, "at": `"2024-01-02T03:04:05Z"`,
			"partId": `"p-1"`, "part": `{"id":"p-1","price":"2.5"}`,
		}
		values[name] = value
		var members []string
		for _, n := range names {
			members = append(members, `"`+n+`":`+values[n])
		}
		record := "{" + strings.Join(members, ",") + "}"
		d := &doc.Doc{}
		compare(t, d, []byte(record), "one", "w-1")
		compare(t, d, []byte("["+record+","+record+","+record+"]"), "many", "")
	})
}
