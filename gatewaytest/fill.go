package gatewaytest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
)

// A record is what a form is filled with: the members of a record of the server's, under
// every name that they are known by. Its amount, or else its name, is under "". A value is
// a string, a bool, a json.Number or another record.
type record map[string]any

// grouped marks the records that have been grouped by their symbol.
const grouped = "\x00grouped"

// fill returns a value that looks like f and has the data: a record, a list of them, a
// scalar, or nil where nothing is known. name is that of the member with the value. Where
// f has several kinds, or a member is optional, turn decides.
func (f *form) fill(data any, name string, turn int) json.RawMessage {
	ways := len(f.kinds)
	if f.object {
		ways++
	}
	if f.array {
		ways++
	}
	if ways == 0 {
		return json.RawMessage("null")
	}
	switch way := turn % ways; {
	case way < len(f.kinds):
		return spell(f.kinds[way], name, scalarOf(data))
	case way == len(f.kinds) && f.object:
		return f.fillObject(data, turn)
	}
	return f.fillArray(data, name)
}

// fillAt is as fill, with the data at a JSON pointer if f has that, and with the number of
// records and of the page beside it.
func (f *form) fillAt(names []string, data any) json.RawMessage {
	switch {
	case len(names) > 0 && f.element != nil && names[0] == "0":
		return slices.Concat(json.RawMessage("["), f.element.fillAt(names[1:], data), json.RawMessage("]"))
	case len(names) == 0 || !slices.ContainsFunc(f.members, func(m member) bool { return m.name == names[0] }):
		return f.fill(data, "", 0)
	}
	list, _ := data.([]record)
	beside := map[string]any{"total": json.Number(strconv.Itoa(len(list))), "page": json.Number("1")}
	beside["count"] = beside["total"]
	var members []string
	for _, m := range f.members {
		value := m.form.fill(beside[m.name], m.name, 0)
		if m.name == names[0] {
			value = m.form.fillAt(names[1:], data)
		}
		members = append(members, quote(m.name)+":"+string(value))
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}

func (f *form) fillArray(data any, name string) json.RawMessage {
	var elements []string
	switch list, isList := data.([]record); {
	case f.element == nil:
	case isList:
		for i, r := range list {
			elements = append(elements, string(f.element.fill(r, "", i)))
		}
	default:
		elements = append(elements, string(f.element.fill(data, name, 0)))
	}
	return json.RawMessage("[" + strings.Join(elements, ",") + "]")
}

func (f *form) fillObject(data any, turn int) json.RawMessage {
	var members []string
	add := func(name string, value json.RawMessage) {
		members = append(members, quote(name)+":"+string(value))
	}
	first := firstOf(data)
	isRecord := f.describes(first)
	for _, m := range f.members {
		list, isList := data.([]record)
		switch {
		case m.optional && turn%2 == 1:
		case m.name == anyName && isList:
			for _, g := range groups(list) {
				add(g.name, m.form.fill(g.list, "", turn))
			}
		case m.name == anyName:
			add("undocumented", m.form.fill(nil, "undocumented", turn))
		case isRecord:
			add(m.name, m.form.fill(first[m.name], m.name, turn))
		case isList && first[m.name] != nil:
			add(m.name, m.form.fill(amounts(list, m.name), m.name, turn))
		case m.form.object || m.form.array:
			add(m.name, m.form.fill(data, m.name, turn))
		default:
			add(m.name, m.form.fill(nil, m.name, turn))
		}
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}

// describes reports whether an object of form f is a record: whether it has one of the
// record's members that is a scalar.
func (f *form) describes(r record) bool {
	return slices.ContainsFunc(f.members, func(m member) bool { return r[m.name] != nil && len(m.form.kinds) > 0 })
}

// firstOf returns the record in data, or nil.
func firstOf(data any) record {
	switch data := data.(type) {
	case record:
		return data
	case []record:
		if len(data) > 0 {
			return data[0]
		}
	}
	return nil
}

// scalarOf returns the scalar that stands for data: the amount of a record, or the sum of
// the amounts in a list.
func scalarOf(data any) any {
	switch data := data.(type) {
	case record:
		return scalarOf(data[""])
	case []record:
		if len(data) == 0 {
			return nil
		}
		sum, isText := data[0][""].(string)
		if !isText {
			return nil
		}
		for _, r := range data[1:] {
			amount, _ := r[""].(string)
			sum = add(sum, amount)
		}
		return sum
	}
	return data
}

// amounts returns the records with one of their members as the amount.
func amounts(list []record, name string) (of []record) {
	for _, r := range list {
		if r[name] != nil {
			of = append(of, record{"symbol": r["symbol"], "": r[name]})
		}
	}
	return of
}

// A group is the records of one symbol, or those of one network of a symbol.
type group struct {
	name string
	list []record
}

func groups(list []record) (all []group) {
	for _, r := range list {
		by := "symbol"
		if r[grouped] != nil {
			by = "networkName"
		}
		name, _ := r[by].(string)
		at := slices.IndexFunc(all, func(g group) bool { return g.name == name })
		if at < 0 {
			at, all = len(all), append(all, group{name: name})
		}
		marked := record{grouped: true}
		for name, value := range r {
			marked[name] = value
		}
		all[at].list = append(all[at].list, marked)
	}
	return all
}

// spell returns a value of a kind, made of a scalar or of nothing.
func spell(kind, name string, scalar any) json.RawMessage {
	s, _ := scalar.(string)
	n, isInteger := scalar.(json.Number)
	switch {
	case kind == kindNull:
		return json.RawMessage("null")
	case kind == kindBoolean && scalar == false:
		return json.RawMessage("false")
	case kind == kindBoolean:
		return json.RawMessage("true")
	case kind == kindInteger && isInteger:
		return json.RawMessage(n)
	case kind == kindNumber && isInteger:
		return json.RawMessage(n + ".5")
	case (kind == kindInteger || kind == kindNumber) && isNumber(s):
		return json.RawMessage(s)
	case kind == kindInteger:
		return json.RawMessage(fmt.Sprint(crc32.ChecksumIEEE([]byte(s))))
	case kind == kindNumber:
		return json.RawMessage("1.5")
	case isInteger:
		s = n.String()
	case scalar == true:
		s = "yes"
	case scalar == false:
		s = "no"
	}
	return json.RawMessage(quote(spellText(kind, name, s)))
}

// isNumber reports whether a decimal number is one in JSON, too.
func isNumber(s string) bool { return isDecimal(s) && json.Valid([]byte(s)) }

// spellText returns a text of a kind, made of another, which may be empty.
func spellText(kind, name, s string) string {
	is := kindOfText(name, s)
	switch {
	case kind == kindEmpty:
		return ""
	case kind == is:
		return s
	case kind == kindText && formats[name] == "" && s == "":
		return "some text"
	case kind == kindLower && s == "":
		return "text"
	case kind == kindUpper && s == "":
		return "TEXT"
	case kind == kindText:
		return unformatted(cmp.Or(formats[name], is), s)
	case kind == kindUUID:
		return seedID(s)
	case kind == kindOtherUUID:
		return seedID("other " + s)
	case kind == kindTime:
		return seedCreated
	case kind == kindDecimal && is == kindEight:
		return strings.TrimRight(s, "0") + "0"
	case kind == kindEight && isDecimal(s):
		whole, fraction, _ := strings.Cut(s, ".")
		return whole + "." + (fraction + "00000000")[:8]
	case kind == kindDecimal, kind == kindEight:
		return "1.50000000"
	case kind == kindUpper:
		return strings.ToUpper(s)
	case kind == kindLower:
		return strings.ToLower(s)
	case kind == kindStatus:
		return pending
	case kind == kindLowerStatus:
		return strings.ToLower(s)
	case kind == kindSuccess:
		return successText
	}
	return s
}

// unformatted returns a text that is not of a format, made of one that may be.
func unformatted(format, s string) string {
	switch format {
	case kindUUID:
		return "id-" + s
	case kindDecimal, kindEight:
		return "none"
	case kindTime:
		return "14 May 2023"
	case kindStatus:
		return unknownStatus
	case kindUpper:
		if len(s) < 2 {
			return s
		}
		return s[:1] + strings.ToLower(s[1:])
	}
	return "Done."
}
