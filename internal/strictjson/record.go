package strictjson

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
	"github.com/cryptogw/gateway/internal/validate"
)

// A Record is how a type of struct is read and written, by the tags of its fields. Each has
// the name of its member, which must be there unless the tag says omitzero:
//
//	json:"name"
//	json:"name,omitzero"
//
// A field is text, a bool, an int, a [decimal.Decimal], a [decimal.NullDecimal] or
// [encoding/json.RawMessage], which can be null, a [time.Time], which is read leniently, a
// struct, or a slice of these. A type of text with a method Known is an enumeration: a text
// that is not known is kept and noted as an [UnknownValue]. Other text can have a second tag:
//
//	check:"nonempty"
//	check:"id"              not empty, and the ExpectID of [Options] where there is one
//	check:"equals coin.id"  not empty, and a [Mismatch] where it differs from that member
type Record[T any] struct{ members members }

// RecordOf makes the Record of T, whose fields must all be of the form above. It panics
// where one is not.
func RecordOf[T any]() *Record[T] { return &Record[T]{membersOf(reflect.TypeFor[T]())} }

// Marshal writes the members in the order of the fields. An amount is text with all its
// digits: see [money.Text].
func (r *Record[T]) Marshal(record T) ([]byte, error) {
	text := []byte{'{'}
	for i, m := range r.members {
		value := reflect.ValueOf(record).Field(i)
		if m.optional && value.IsZero() {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		var err error
		if text, err = appendValue(append(append(text, m.quoted...), ':'), value.Interface()); err != nil {
			return nil, fmt.Errorf("%T to JSON: /%s %w", record, m.name, err)
		}
	}
	return append(text, '}'), nil
}

func appendValue(text []byte, value any) ([]byte, error) {
	switch value := value.(type) {
	case decimal.Decimal:
		amount, err := money.Text(value)
		return append(text, `"`+amount+`"`...), err
	case decimal.NullDecimal:
		if value.Valid {
			return appendValue(text, value.Decimal)
		}
		return append(text, "null"...), nil
	default:
		encoded, err := jsonv2.Marshal(value, jsontext.PreserveRawStrings(true))
		return append(text, encoded...), err
	}
}

// Unmarshal reads a text that is one record. Members that the record does not have are
// skipped. After an error, into is as it was.
func (r *Record[T]) Unmarshal(text []byte, into *T) error {
	var d Decoder
	d.Reset(text, Options{})
	record := new(T)
	r.fill(&d, record)
	d.EndDocument()
	if d.err != nil {
		return fmt.Errorf("%T from JSON: %s %w", *record, cmp.Or(d.err.Pointer, "it"), d.err.Err)
	}
	*into = *record
	return nil
}

// fill reads one object into a record.
func (r *Record[T]) fill(d *Decoder, into *T) { r.members.fill(d, reflect.ValueOf(into).Elem()) }

// members are the members of a record, by the index of their fields.
type members []member

type member struct {
	name     string
	quoted   jsontext.Value // the name as JSON
	optional bool
	equals   []int // the index of the field that it is documented to equal; nil for none
	recurs   bool  // in a list, equal values are read once
	read     reader
}

// A reader reads a field from a value that d has read last.
type reader func(d *Decoder, value jsontext.Value, into reflect.Value)

// readerWithin reads an object or array with a decoder of its own.
func readerWithin(fill func(*Decoder, reflect.Value)) reader {
	return func(d *Decoder, value jsontext.Value, into reflect.Value) {
		inner := d.within(value)
		fill(inner, into)
		d.err = inner.err
	}
}

func readSlice(d *Decoder, read reader, into reflect.Value) {
	all := reflect.MakeSlice(into.Type(), 0, 0)
	if !d.Begin('[') {
		return
	}
	for d.More() {
		if value := d.Value(); d.err == nil {
			all = reflect.Append(all, reflect.Zero(into.Type().Elem()))
			read(d, value, all.Index(all.Len()-1))
			d.show(value)
		}
	}
	d.End()
	into.Set(all)
}

// fill reads one object into a record. A member that the record does not have is skipped;
// one that must be there and is missing is an error.
func (ms members) fill(d *Decoder, into reflect.Value) {
	if !d.Begin('{') {
		return
	}
	var seen uint64
	for next := 0; d.More(); {
		i, quoted := next, d.Value()
		if d.err == nil && (next == len(ms) || !bytes.Equal(quoted, ms[next].quoted)) { // members mostly come in one order
			i = ms.index(Unquote(quoted))
		}
		if i < 0 {
			d.SkipUnknown()
			continue
		}
		if value := d.Value(); d.err == nil {
			d.readMember(ms, i, value, into.Field(i))
		}
		seen |= 1 << i
		next = i + 1
	}
	if !d.End() {
		return
	}
	for i := range ms {
		m := &ms[i]
		if seen&(1<<i) == 0 && !m.optional {
			d.FailMissing(m.name)
			return
		}
		if m.equals != nil && d.Notes != nil && !validate.SameID(into.Field(i).String(), into.FieldByIndex(m.equals).String()) {
			d.noteMember(Mismatch, m.name)
		}
	}
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

// recurring are values of the members of the records of a list, each by its JSON: in a listing
// each coin comes with every network, and a few amounts and times recur. They are neither
// decoded nor stored a second time.
type recurring []map[string]reflect.Value

// maxRecurring is how many values of a member are kept at one time.
const maxRecurring = 256

// readMember reads the member i from a value that was read last.
func (d *Decoder) readMember(ms members, i int, value jsontext.Value, into reflect.Value) {
	if d.recurring == nil || !ms[i].recurs {
		ms[i].read(d, value, into)
		d.show(value)
		return
	}
	if before, ok := d.recurring[i][string(value)]; ok {
		into.Set(before)
		return
	}
	if ms[i].read(d, value, into); d.err != nil {
		d.show(value)
		return
	}
	if d.recurring[i] == nil {
		d.recurring[i] = map[string]reflect.Value{}
	} else if len(d.recurring[i]) == maxRecurring {
		clear(d.recurring[i])
	}
	stored := reflect.New(into.Type()).Elem()
	stored.Set(into)
	d.recurring[i][string(value)] = stored
}

// within returns a decoder for a value, with the same errors and notes in the same places.
// It is that of the next value, too.
func (d *Decoder) within(value jsontext.Value) *Decoder {
	if d.inner == nil {
		d.inner = &Decoder{}
	}
	d.inner.Reset(value, Options{Redactor: d.Redactor, Notes: d.Notes})
	d.inner.outer = d
	return d.inner
}
