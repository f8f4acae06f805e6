package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
)

// maxMembers is how many bits there are for what was seen.
const maxMembers = 64

func membersOf(record reflect.Type) members {
	var all members
	for i := range record.NumField() {
		f := record.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || all.index([]byte(name)) >= 0 || option != "" && option != "omitzero" || !f.IsExported() || i == maxMembers {
			panic(fmt.Sprintf("strictjson: %v.%s: its tag is %q", record, f.Name, f.Tag))
		}
		m := member{name: name, optional: option == "omitzero"}
		m.quoted, _ = jsontext.AppendQuote(nil, name) // a tag of the source: it is valid
		m.read, m.recurs = readerOf(f.Type)
		switch check := f.Tag.Get("check"); {
		case check == "":
		case f.Type.Kind() != reflect.String:
			panic(fmt.Sprintf("strictjson: %v.%s: a check of a %v", record, f.Name, f.Type))
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
			panic(fmt.Sprintf("strictjson: %v: a check %q", record, check))
		}
		index, within = append(index, found), within.Field(found).Type
	}
	return index
}

func readerOf(t reflect.Type) (read reader, recurs bool) {
	switch {
	case t == reflect.TypeFor[decimal.Decimal]():
		return readAmount, true
	case t == reflect.TypeFor[decimal.NullDecimal]():
		return readNullAmount, false
	case t == reflect.TypeFor[time.Time]():
		return readTime, true
	case t == reflect.TypeFor[json.RawMessage]():
		return readRaw, false
	case t.Kind() == reflect.Bool:
		return readBool, false
	case t.Kind() == reflect.Int:
		return readInt, false
	case t.Kind() == reflect.String && t.Implements(reflect.TypeFor[enumeration]()):
		return readEnum, false
	case t.Kind() == reflect.String:
		return readText, false
	case t.Kind() == reflect.Struct:
		return readerWithin(membersOf(t).fill), true
	case t.Kind() == reflect.Slice:
		read, _ := readerOf(t.Elem())
		return readerWithin(func(d *Decoder, into reflect.Value) { readSlice(d, read, into) }), false
	}
	panic(fmt.Sprintf("strictjson: a field of type %v", t))
}
