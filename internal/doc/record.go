package doc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
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

	errMissing = errors.New("is missing")
	errSeveral = errors.New("has several records where one is expected")
)

// A Record reads a type of struct by the tags of its fields. A tag has the name of a member, which must
// be there unless the tag says omitzero:
//
//	json:"name"
//	json:"name,omitzero"
//
// A field is text, a bool, an int, a [decimal.Decimal], a [time.Time] or a struct of these. A type of text with a
// method Known is an enumeration: a text that is not known is kept and noted as an [UnknownValue], and one in another
// case is written in upper case and is an [UnexpectedValue]. A second tag has checks, separated by commas:
//
//	check:"nonempty"         a text that is not empty
//	check:"id"               not empty, and the identifier that was asked for, if there is one
//	check:"equals coin.id"   not empty, and a [Mismatch] if it differs from that member
//	check:"needless"         zero if it is missing or cannot be read, which is noted as [Lacking]
//	check:"off withdrawable" if it is zero for that reason, the bool of that name is false
//
// A time is always needless. A field of type []string is no member: it lists the needless members that are zero for
// that reason, in alphabetical order, those of a struct within as "coin.name".
type Record[T any] struct {
	members members
	list    int // the index of the field of type []string; -1 for none
}

// RecordOf makes the Record of T. It panics if a field or its tags are not of the form above.
func RecordOf[T any]() *Record[T] {
	members := membersOf(reflect.TypeFor[T](), "")
	return &Record[T]{members, slices.IndexFunc(members, func(m member) bool { return m.isList })}
}

// One reads a record, or an array of exactly one. The record must have the identifier, unless that is
// empty. For an empty array the error is [ErrNoRecord].
func (r *Record[T]) One(n Node, id string) (*T, *Error) {
	only := n.Only()
	if only.IsZero() && n.Len() == 0 {
		return nil, n.Errorf("%w", ErrNoRecord)
	}
	if only.IsZero() {
		return nil, n.Errorf("%w", errSeveral)
	}
	record := new(T)
	n.doc.one = reading{id: id}
	if wrong := r.read(&n.doc.one, only, record); wrong != nil {
		return nil, wrong.located()
	}
	return record, nil
}

// Many reads an array of records, and skips those that cannot be read. If none can be read, that is an
// error.
func (r *Record[T]) Many(n Node) ([]T, *Error) { return r.many(n, reading{}) }

func (r *Record[T]) many(n Node, from reading) ([]T, *Error) {
	if n.Kind() != '[' {
		return nil, n.Errorf("%w", notA{n.Kind(), KindName('[')})
	}
	size := int(reflect.TypeFor[T]().Size()) // an array of short values, which are no records, takes no memory for each
	records := make([]T, 0, min(n.Len(), 2*len(n.Raw())/size))
	for part := range n.Parts() {
		if len(records) == 1 {
			from.recurring = make([]map[string]recurred, len(r.members))
		}
		records = append(records, *new(T))
		if wrong := r.read(&from, part, &records[len(records)-1]); wrong != nil {
			records = records[:len(records)-1]
			part.skip(wrong)
		}
	}
	if len(records) == 0 {
		return records, n.doc.FirstSkipped()
	}
	return records, nil
}

// read reads one record.
func (r *Record[T]) read(from *reading, n Node, record *T) *fault {
	from.missing = from.missing[:0]
	into := reflect.ValueOf(record).Elem()
	wrong := r.members.read(from, n, into)
	if r.list >= 0 && len(from.missing) > 0 {
		slices.Sort(from.missing)
		into.Field(r.list).Set(reflect.ValueOf(slices.Clone(from.missing)))
	}
	return wrong
}

// Alone reads a record, or an array of exactly one, as an array of one.
func (r *Record[T]) Alone(n Node) ([]T, *Error) {
	record, wrong := r.One(n, "")
	if wrong != nil {
		return nil, wrong
	}
	return []T{*record}, nil
}

// OneOrMany reads an array of records, or one record as an array of one. That one must be readable.
func (r *Record[T]) OneOrMany(n Node) ([]T, *Error) {
	if n.Kind() == '[' {
		return r.Many(n)
	}
	return r.Alone(n)
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

// members are the members of a record, by the index of their fields.
type members []member

type member struct {
	name     string
	path     string         // the name, after the names of the structs that it is in
	quoted   jsontext.Value // the name as JSON
	optional bool
	needless bool
	isList   bool  // it is no member, but lists the missing ones
	equals   []int // the index of the field that it is documented to equal; nil for none
	off      []int // the index of the bool that is false without it; nil for none
	recurs   bool  // in a list, equal values are read once
	nested   members
	read     reader
}

// A reader reads a field from a value.
type reader func(from *reading, n Node, into reflect.Value) *fault

// A reading is the state of reading a record or a list.
type reading struct {
	id      string   // the identifier that was asked for; empty for any
	strict  bool     // the text was written from records: all members are there, and the list of missing ones
	missing []string // the paths of the needless members that the record lacks

	// recurring has values of the members of the records of a list, each by its JSON: in a listing each
	// coin comes with every network, and a few amounts and times recur. They are neither decoded nor
	// stored a second time. It is nil outside of a list.
	recurring []map[string]recurred
}

// A recurred is a value that recurs, with the paths of the needless members that it lacks.
type recurred struct {
	value   reflect.Value
	missing []string
}

// maxRecurring is how many values of a member are kept at one time.
const maxRecurring = 256

// read reads one object into a record. It notes an unknown member.
func (ms members) read(from *reading, n Node, into reflect.Value) *fault {
	if kind := n.Kind(); kind != '{' {
		return n.fault(notA{kind, KindName('{')})
	}
	var known uint64 // which members were read
	next := 0
	for part := range n.Parts() {
		i, quoted := next, part.quotedName()
		if next == len(ms) || !bytes.Equal(quoted, ms[next].quoted) { // members mostly come in one order
			i = ms.index(unquote(quoted))
		}
		if i < 0 || ms[i].isList && !from.strict {
			part.Note(UnknownField)
			continue
		}
		next = i + 1
		switch wrong := ms.readMember(from, i, part, into.Field(i)); {
		case wrong == nil:
			known |= 1 << i
		case ms[i].needless && !from.strict:
			wrong.note(Lacking)
		default:
			return wrong
		}
	}
	for i := range ms {
		m := &ms[i]
		if known&(1<<i) == 0 {
			if wrong := m.lack(from, n, into); wrong != nil {
				return wrong
			}
		}
		if m.equals != nil && differ(into.Field(i).String(), into.FieldByIndex(m.equals).String()) {
			n.Member(m.name).Note(Mismatch)
		}
	}
	return nil
}

// lack does without a member that is absent or cannot be read, or returns an error.
func (m *member) lack(from *reading, n Node, into reflect.Value) *fault {
	isNeedless := m.needless && !from.strict
	if !m.optional {
		absent := &fault{at: n, missing: m.name, err: errMissing}
		if !isNeedless {
			return absent
		}
		absent.note(Lacking) // once: not if it was noted as unreadable
	}
	if isNeedless {
		from.missing = append(from.missing, m.path)
		if m.off != nil {
			into.FieldByIndex(m.off).SetBool(false)
		}
	}
	return nil
}

// differ reports whether two identifiers that are there are not the same.
func differ(a, b string) bool { return a != "" && b != "" && !endpoint.SameID(a, b) }

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
		into.Set(before.value)
		from.missing = append(from.missing, before.missing...)
		return nil
	}
	known := len(from.missing)
	if wrong := ms[i].read(from, n, into); wrong != nil {
		return wrong
	}
	if len(from.recurring[i])%maxRecurring == 0 { // there are none yet, or too many
		from.recurring[i] = map[string]recurred{}
	}
	stored := reflect.New(into.Type()).Elem()
	stored.Set(into)
	from.recurring[i][string(raw)] = recurred{stored, slices.Clone(from.missing[known:])}
	return nil
}

// maxMembers is how many bits there are for the members that were seen.
const maxMembers = 64

// membersOf returns the members of a struct. Path is before their names.
func membersOf(record reflect.Type, path string) members {
	var all members
	for i := range record.NumField() {
		f := record.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || option != "" && option != "omitzero" || i == maxMembers {
			panic(fmt.Sprintf("doc: %v.%s: its tag is %q", record, f.Name, f.Tag))
		}
		m := member{name: name, path: path + name, optional: option == "omitzero"}
		m.quoted, _ = jsontext.AppendQuote(nil, name) // a tag of the source: it is valid
		m.setReader(f.Type)
		m.setChecks(record, f)
		all = append(all, m)
	}
	return all
}

// setChecks sets what the second tag of a field says.
func (m *member) setChecks(record reflect.Type, f reflect.StructField) {
	for check := range strings.SplitSeq(f.Tag.Get("check"), ",") {
		switch word, name, _ := strings.Cut(check, " "); word {
		case "":
		case "needless":
			m.needless = true
		case "off":
			m.off = indexOf(record, name)
		case "nonempty":
			m.read = readNonEmpty
		case "id":
			m.read = readID
		case "equals":
			m.read, m.recurs, m.equals = readNonEmpty, true, indexOf(record, name)
		default:
			panic(fmt.Sprintf("doc: %v.%s: the check %q", record, f.Name, check))
		}
	}
}

// indexOf returns the index of the field that the tag of a check names, such as coin.id: a path of names of members.
func indexOf(record reflect.Type, path string) (index []int) {
	within := record
	for name := range strings.SplitSeq(path, ".") {
		found := -1 // there must be one
		for i := range within.NumField() {
			if of, _, _ := strings.Cut(within.Field(i).Tag.Get("json"), ","); of == name {
				found = i
			}
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
		m.read, m.recurs, m.needless = readTime, true, true
	case t == reflect.TypeFor[[]string]():
		m.read, m.isList = readTexts, true
	case t.Kind() == reflect.Bool:
		m.read = readBool
	case t.Kind() == reflect.Int:
		m.read = readInt
	case t.Kind() == reflect.String && t.Implements(reflect.TypeFor[enumeration]()):
		m.read = readEnum
	case t.Kind() == reflect.String:
		m.read = readText
	case t.Kind() == reflect.Struct:
		m.nested = membersOf(t, m.path+".")
		m.read, m.recurs = readNested(m.nested), true
	default:
		panic(fmt.Sprintf("doc: a field of type %v", t))
	}
}

// readNested returns a reader of a struct within a record. In it nothing recurs but the whole.
func readNested(ms members) reader {
	return func(from *reading, n Node, into reflect.Value) *fault {
		recurring := from.recurring
		from.recurring = nil
		wrong := ms.read(from, n, into)
		from.recurring = recurring
		return wrong
	}
}
