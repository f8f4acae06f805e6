package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/cryptogw/gateway"
)

// A decoder reads the members of a result that look like the identifier, the address and the page of an invoice.
type decoder struct{ id, address, link *member }

// A member is a value in a result, and the way to it.
type member struct {
	path     []string // names, and "" for the first element of an array
	text     string
	isNumber bool
}

// newDecoder finds the members. Nil means that there is none.
func newDecoder(result json.RawMessage, orderID string) *decoder {
	var found decoder
	for _, m := range membersOf(result) {
		if m.text == "" || strings.EqualFold(m.text, orderID) {
			continue
		}
		switch name := plain(m.path[len(m.path)-1]); {
		case isOneOf(name, idNames):
			found.id = better(found.id, m, idNames)
		case !m.isNumber && isOneOf(name, addressNames):
			found.address = better(found.address, m, addressNames)
		case isOneOf(name, linkNames) && regexp.MustCompile(`^https?://.`).MatchString(m.text):
			found.link = better(found.link, m, linkNames)
		}
	}
	if found == (decoder{}) {
		return nil
	}
	return &found
}

// The plain names of members, the surest first. They are a guess: only the operator knows.
var (
	idNames      = []string{"invoiceid", "invoiceuuid", "paymentid", "trackid", "txnid", "chargeid", "uuid", "id"}
	addressNames = []string{"payaddress", "paymentaddress", "depositaddress", "payinaddress", "walletaddress", "walletto", "cryptoaddress", "address"}
	linkNames    = []string{
		"paymenturl", "payurl", "checkouturl", "invoiceurl", "hostedurl", "paymentlink", "paylink", "checkoutlink", "invoicelink", "url", "link",
	}
)

func isOneOf(name string, names []string) bool { return slices.Contains(names, name) }

// better returns the member whose name is surer, or that is nearer to the top.
func better(a *member, b member, names []string) *member {
	rank := func(m member) int { return slices.Index(names, plain(m.path[len(m.path)-1])) }
	if a == nil || rank(b) < rank(*a) || rank(b) == rank(*a) && len(b.path) < len(a.path) {
		return &b
	}
	return a
}

// plain returns a name in lower case, without the signs that join words.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}

// mostDepth is how deep a member may be. Lists of invoices, and trees of errors, are no invoice.
const mostDepth = 6

// membersOf returns the texts and numbers in a result whose names can be those of fields of a struct.
func membersOf(result json.RawMessage) (all []member) {
	from := json.NewDecoder(bytes.NewReader(result))
	from.UseNumber()
	var value any
	if from.Decode(&value) != nil {
		return nil
	}
	isName := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`).MatchString
	var walk func(value any, path []string)
	walk = func(value any, path []string) {
		if len(path) > mostDepth {
			return
		}
		switch v := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if isName(name) {
					walk(v[name], append(slices.Clip(path), name))
				}
			}
		case []any:
			if len(v) == 1 {
				walk(v[0], append(slices.Clip(path), ""))
			}
		case string:
			if len(path) > 0 && path[len(path)-1] != "" {
				all = append(all, member{path: path, text: v})
			}
		case json.Number:
			if len(path) > 0 && path[len(path)-1] != "" {
				all = append(all, member{path: path, text: v.String(), isNumber: true})
			}
		}
	}
	walk(value, nil)
	return all
}

// details reads a result as the function that the decoder writes does.
func (d *decoder) details() (details gateway.InvoiceDetails) {
	for _, f := range []struct {
		of   *member
		into *string
	}{{d.id, &details.ID}, {d.address, &details.Address}, {d.link, &details.PaymentURL}} {
		if f.of != nil {
			*f.into = f.of.text
		}
	}
	return details
}

// A field is a field of the struct that is written.
type field struct {
	name   string // of the member; "" for the first element of an array
	fields []*field
	kind   string // string or json.Number; "" for a struct
	as     string // its Go name
}

func (d *decoder) code() string {
	root := &field{}
	var set []string
	for _, f := range []struct {
		name string
		of   *member
	}{{"ID", d.id}, {"Address", d.address}, {"PaymentURL", d.link}} {
		if f.of == nil {
			continue
		}
		value := "r" + root.add(f.of, f.name)
		if f.of.isNumber {
			value += ".String()"
		}
		set = append(set, f.name+": "+value)
	}
	text := "// Ask the operator of the gateway whether these members are the right ones.\n" +
		"func readInvoice(result json.RawMessage) (gateway.InvoiceDetails, error) {\n\tvar r " + root.goType() + "\n" +
		"\terr := json.Unmarshal(result, &r)\n\treturn gateway.InvoiceDetails{" + strings.Join(set, ", ") + "}, err\n}\n"
	formatted, err := format.Source([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("%v in %s", err, text)) // the names were checked
	}
	return string(formatted)
}

// add adds the fields on the way to a member, and returns how Go selects it.
func (f *field) add(m *member, as string) (selector string) {
	for i, name := range m.path {
		at := slices.IndexFunc(f.fields, func(one *field) bool { return one.name == name })
		if at < 0 {
			next := &field{name: name, as: exported(name)}
			if i == len(m.path)-1 {
				next.as, next.kind = as, map[bool]string{false: "string", true: "json.Number"}[m.isNumber]
			}
			at, f.fields = len(f.fields), append(f.fields, next)
		}
		f = f.fields[at]
		if name == "" {
			selector += "[0]"
		} else {
			selector += "." + f.as
		}
	}
	return selector
}

// exported returns a name of Go for a member that has others.
func exported(name string) string {
	upper := true
	return "In" + strings.Map(func(c rune) rune {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			upper = true
			return -1
		case upper:
			upper = false
			return unicode.ToUpper(c)
		default:
			return c
		}
	}, name)
}

// goType returns the type of a field.
func (f *field) goType() string {
	switch {
	case f.kind != "":
		return f.kind
	case len(f.fields) == 1 && f.fields[0].name == "":
		return "[1]" + f.fields[0].goType()
	}
	var b strings.Builder
	b.WriteString("struct {\n")
	for _, one := range f.fields {
		fmt.Fprintf(&b, "%s %s `json:%q`\n", one.as, one.goType(), one.name)
	}
	b.WriteString("}")
	return b.String()
}
