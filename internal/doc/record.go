package doc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
)

var (
	// ErrMismatch is the error of a record with another identifier than the one asked for.
	ErrMismatch = errors.New("is another record than the requested one")

	// ErrNoRecord is the error of an empty array where one record is expected.
	ErrNoRecord = errors.New("has no record")

	errMissing      = errors.New("is missing")
	errMissingInAll = errors.New("is missing in every record")
	errSeveral      = errors.New("is one of several records where one is expected")
)

// A Record reads a type of struct by the tags of its fields. A tag has the name of a member, which must
// be there unless the tag says omitzero:
//
//	json:"name"
//	json:"name,omitzero"
//
// A field is text, a bool, an int, a [decimal.Decimal], a [time.Time], which is read leniently, or a
// struct of these. A type of text with a method Known is an enumeration: a text that is not known is
// kept and noted as an [UnknownValue], and one in another case is written in upper case and is an [UnexpectedValue]. Other text can have a second tag:
//
//	check:"nonempty"
//	check:"id"              not empty, and the identifier that was asked for, if there is one
//	check:"equals coin.id"  not empty, and a [Mismatch] if it differs from that member
//
// A field of any type can have the tag check:"nullable" or check:"nullable off name": its null is the zero value and an
// [UnexpectedValue], and sets the bool with that name to false. In a list it may also be missing, but not in every record.
type Record[T any] struct{ members members }

// RecordOf makes the Record of T. It panics if a field or its tags are not of the form above.
func RecordOf[T any]() *Record[T] { return &Record[T]{membersOf(reflect.TypeFor[T]())} }

// One reads a record, or an array of exactly one. The record must have the identifier, unless that is
// empty. For an empty array the error is [ErrNoRecord].
func (r *Record[T]) One(n Node, id string) (*T, *Error) {
	several := false
	if n.Kind() == '[' {
		count := n.Len()
		if count == 0 {
			return nil, n.Errorf("%w", ErrNoRecord)
		}
		n.at, several = n.at+1, count > 1
	}
	record := new(T)
	n.doc.one = reading{id: id}
	wrong := r.members.read(&n.doc.one, n, reflect.ValueOf(record).Elem())
	if wrong == nil && several {
		wrong = n.fault(errSeveral)
	}
	if wrong != nil {
		return nil, wrong.located()
	}
	return record, nil
}

// Many reads an array of records, and skips those that cannot be read. If none can be read, that is an
// error.
func (r *Record[T]) Many(n Node) ([]T, *Error) { return r.many(n, reading{inList: true}) }

func (r *Record[T]) many(n Node, from reading) ([]T, *Error) {
	if n.Kind() != '[' {
		return nil, n.Errorf("%w", notA{n.Kind(), KindName('[')})
	}
	records := make([]T, 0, r.mostIn(n))
	for part := range n.Parts() {
		if len(records) == 1 && from.recurring == nil {
			from.recurring = make([]map[string]reflect.Value, len(r.members))
		}
		records = append(records, *new(T))
		if wrong := r.members.read(&from, part, reflect.ValueOf(&records[len(records)-1]).Elem()); wrong != nil {
			records = records[:len(records)-1]
			part.skip(wrong)
		}
	}
	if len(records) == 0 {
		return records, n.doc.FirstSkipped()
	}
	for i := range r.members {
		if m := &r.members[i]; m.nullable && from.inList && from.present&(1<<i) == 0 {
			return nil, (&fault{at: n, missing: m.name, err: errMissingInAll}).located()
		}
	}
	return records, nil
}

// OneOrMany reads an array of records, or one record as an array of one. That one must be readable.
func (r *Record[T]) OneOrMany(n Node) ([]T, *Error) {
	if n.Kind() == '[' {
		return r.Many(n)
	}
	record, wrong := r.One(n, "")
	if wrong != nil {
		return nil, wrong
	}
	return []T{*record}, nil
}

// UnmarshalAll reads an array of records. A record that cannot be read is an error, and so is null.
func (r *Record[T]) UnmarshalAll(text []byte) ([]T, error) {
	var d Doc
	wrong := d.Parse(text, redact.Redactor{}, MaxListing)
	if wrong == nil {
		records, first := r.many(d.Root(), reading{strict: true})
		if wrong = cmp.Or(first, d.FirstSkipped()); wrong == nil {
			return records, nil
		}
	}
	return nil, fmt.Errorf("%s %w", cmp.Or(wrong.Pointer, "it"), wrong.Err)
}

// mostIn returns an upper bound of the records in an array: an array of shorter elements, which
// cannot be records, takes no memory for them.
func (r *Record[T]) mostIn(n Node) int { return min(n.Len(), len(n.Raw())/r.members.shortest()) }

// members are the members of a record, by the index of their fields.
type members []member

type member struct {
	name     string
	quoted   jsontext.Value // the name as JSON
	optional bool
	equals   []int // the index of the field that it is documented to equal; nil for none
	nullable bool
	off      []int // the index of the bool that a null sets to false; nil for none
	recurs   bool  // in a list, equal values are read once
	nested   members
	read     reader
}

// A reader reads a field from a value.
type reader func(from *reading, n Node, into reflect.Value) *fault

// A reading is the state of reading a record or a list.
type reading struct {
	id string // the identifier that was asked for; empty for any

	strict  bool // a null is no value of any member
	inList  bool
	present uint64 // the members that a record of the list has had

	// recurring has values of the members of the records of a list, each by its JSON: in a listing each
	// coin comes with every network, and a few amounts and times recur. They are neither decoded nor
	// stored a second time. It is nil outside of a list.
	recurring []map[string]reflect.Value
}

// maxRecurring is how many values of a member are kept at one time.
const maxRecurring = 256

// read reads one object into a record. It notes an unknown member. A missing member is an error if it is
// required.
func (ms members) read(from *reading, n Node, into reflect.Value) *fault {
	if kind := n.Kind(); kind != '{' {
		return n.fault(notA{kind, KindName('{')})
	}
	var seen, nulls uint64
	next := 0
	for part := range n.Parts() {
		i, quoted := next, part.quotedName()
		if next == len(ms) || !bytes.Equal(quoted, ms[next].quoted) { // members mostly come in one order
			i = ms.index(unquote(quoted))
		}
		if i < 0 {
			part.Note(UnknownField)
			continue
		}
		seen |= 1 << i
		next = i + 1
		if ms[i].nullable && !from.strict && part.Kind() == 'n' {
			part.Note(UnexpectedValue)
			nulls |= 1 << i
			continue
		}
		if wrong := ms.readMember(from, i, part, into.Field(i)); wrong != nil {
			return wrong
		}
	}
	if from.inList { // a record within a record shares its reading with others
		from.present |= seen
	}
	for i := range ms {
		m := &ms[i]
		missing := seen&(1<<i) == 0 && !m.optional
		switch {
		case missing && m.nullable && from.inList:
			n.Note(UnexpectedValue)
			nulls |= 1 << i
		case missing:
			return &fault{at: n, missing: m.name, err: errMissing}
		}
		if m.off != nil && nulls&(1<<i) != 0 {
			into.FieldByIndex(m.off).SetBool(false)
		}
		if m.equals != nil && !endpoint.SameID(into.Field(i).String(), into.FieldByIndex(m.equals).String()) {
			n.Member(m.name).Note(Mismatch)
		}
	}
	return nil
}

// index returns the place of a name, or -1.
func (ms members) index(name []byte) int {
	for i := range ms {
		if ms[i].name == string(name) {
			return i
		}
	}
	return -1
}

// readMember reads the member i.
func (ms members) readMember(from *reading, i int, n Node, into reflect.Value) *fault {
	if from.recurring == nil || !ms[i].recurs {
		return ms[i].read(from, n, into)
	}
	raw := n.Raw()
	if before, ok := from.recurring[i][string(raw)]; ok {
		into.Set(before)
		return nil
	}
	if wrong := ms[i].read(from, n, into); wrong != nil {
		return wrong
	}
	if from.recurring[i] == nil {
		from.recurring[i] = map[string]reflect.Value{}
	} else if len(from.recurring[i]) == maxRecurring {
		clear(from.recurring[i])
	}
	stored := reflect.New(into.Type()).Elem()
	stored.Set(into)
	from.recurring[i][string(raw)] = stored
	return nil
}

// shortest returns how many bytes a record has at least.
func (ms members) shortest() (bytes int) {
	for _, m := range ms {
		if !m.optional && !m.nullable {
			bytes += len(m.quoted) + len(`:1,`) + m.nested.shortest()
		}
	}
	return max(bytes, 1)
}

// maxMembers is how many bits there are for the members that were seen.
const maxMembers = 64

func membersOf(record reflect.Type) members {
	var all members
	for i := range record.NumField() {
		f := record.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || all.index([]byte(name)) >= 0 || option != "" && option != "omitzero" || !f.IsExported() || i == maxMembers {
			panic(fmt.Sprintf("doc: %v.%s: its tag is %q", record, f.Name, f.Tag))
		}
		m := member{name: name, optional: option == "omitzero"}
		m.quoted, _ = jsontext.AppendQuote(nil, name) // a tag of the source: it is valid
		m.setReader(f.Type)
		switch check := f.Tag.Get("check"); {
		case check == "":
		case check == "nullable" || strings.HasPrefix(check, "nullable off "):
			m.nullable = true
			if check != "nullable" {
				m.off = indexOf(record, strings.Replace(check, "nullable off", "equals", 1))
			}
		case f.Type.Kind() != reflect.String:
			panic(fmt.Sprintf("doc: %v.%s: a check of a %v", record, f.Name, f.Type))
		case check == "nonempty":
			m.read = readNonEmpty
		case check == "id":
			m.read = readID
		default:
			m.read, m.recurs, m.equals = readNonEmpty, true, indexOf(record, check)
		}
		all = append(all, m)
	}
	return all
}

// indexOf finds the field that a check names, by the names of members.
func indexOf(record reflect.Type, check string) (index []int) {
	path, ok := strings.CutPrefix(check, "equals ")
	within := record
	for name := range strings.SplitSeq(path, ".") {
		found := -1
		for i := range within.NumField() {
			if of, _, _ := strings.Cut(within.Field(i).Tag.Get("json"), ","); ok && of == name {
				found = i
			}
		}
		if found < 0 {
			panic(fmt.Sprintf("doc: %v: a check %q", record, check))
		}
		index, within = append(index, found), within.Field(found).Type
	}
	return index
}

// setReader sets how a type is read.
func (m *member) setReader(t reflect.Type) {
	switch {
	case t == reflect.TypeFor[decimal.Decimal]():
		m.read, m.recurs = readAmount, true
	case t == reflect.TypeFor[time.Time]():
		m.read, m.recurs = readTime, true
	case t.Kind() == reflect.Bool:
		m.read = readBool
	case t.Kind() == reflect.Int:
		m.read = readInt
	case t.Kind() == reflect.String && t.Implements(reflect.TypeFor[enumeration]()):
		m.read = readEnum
	case t.Kind() == reflect.String:
		m.read = readText
	case t.Kind() == reflect.Struct:
		m.nested = membersOf(t)
		m.read, m.recurs = readNested(m.nested), true
	default:
		panic(fmt.Sprintf("doc: a field of type %v", t))
	}
}

// readNested returns a reader of a struct within a record. In it nothing recurs but the whole.
func readNested(ms members) reader {
	alone := &reading{}
	return func(_ *reading, n Node, into reflect.Value) *fault { return ms.read(alone, n, into) }
}
