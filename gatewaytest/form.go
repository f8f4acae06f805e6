package gatewaytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A form is what a JSON value looks like, without the value: kinds of text, numbers and
// flags from a closed list, and the names of members. Its JSON is the value with kinds in
// the place of texts, numbers and flags.
type form struct {
	kinds   []string // of the scalars seen here, see the constants
	object  bool     // whether an object was seen here
	members []member // its members, in their order
	array   bool     // whether an array was seen here
	element *form    // its elements; nil if it had none
}

// A member of a form. Its name is [anyName] for members whose names are data.
type member struct {
	name     string
	optional bool // whether some of the records do not have it
	form     *form
}

// Kinds of scalars.
const (
	kindNull        = "null"
	kindBoolean     = "boolean"
	kindInteger     = "integer"
	kindNumber      = "number"
	kindText        = "text" // also what should have one of the formats below and has not
	kindEmpty       = "empty"
	kindUUID        = "uuid"
	kindOtherUUID   = "other-uuid" // of a record, and not that of the record beside it
	kindTime        = "time"
	kindDecimal     = "decimal"
	kindEight       = "decimal-8" // with eight decimal places
	kindUpper       = "upper"
	kindLower       = "lower"
	kindStatus      = "status"
	kindLowerStatus = "lower-status"
	kindSuccess     = "success" // the documented message
)

const (
	anyName = "*" // the name of members whose names are data, such as symbols
	orName  = "|" // the only member of the JSON of a form that is more than one of the three

	maxForms = 2000 // in one response
	maxDepth = 32
)

// formats are the kinds of the members that have a documented or a known format.
var formats = map[string]string{
	"id": kindUUID, "networkId": kindUUID, "coinId": kindUUID,
	"withdrawalFee": kindDecimal, "swapFee": kindDecimal, "minWithdraw": kindDecimal, "maxWithdraw": kindDecimal,
	"minAmount": kindEight, "created_at": kindTime, "updated_at": kindTime,
	"symbol": kindUpper, "coinSymbol": kindUpper, "currency": kindUpper,
	"usd": kindDecimal, "USD": kindDecimal, "eur": kindDecimal, "EUR": kindDecimal,
	"balance": kindDecimal, "amount": kindDecimal, "available": kindDecimal, "fee": kindDecimal,
	"status": kindStatus, "message": kindSuccess, "": kindDecimal,
}

// documentedNames are the names of members that docs/interface.md has, beside those with a format.
var documentedNames = strings.Fields(`result meta depositable withdrawable confirmation arrivalTime expirationTime
	network coin name isActive precision networkName destination withdrawRequestId`)

// wrapperNames are names of members that hold a result within a result.
var wrapperNames = strings.Fields(`data items records list rates prices balances results page total count`)

func isData(name string) bool { return !programName.MatchString(name) }

func isKnownName(name string) bool {
	_, known := formats[name]
	return name != "" && known || slices.Contains(documentedNames, name)
}

var (
	uuidText    = regexp.MustCompile(`^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$`)
	programName = regexp.MustCompile(`^[a-z][A-Za-z_]{0,31}$`)
	fiatName    = regexp.MustCompile(`^[A-Z]{3}$`)
	symbolText  = regexp.MustCompile(`^[0-9]*[A-Za-z][0-9A-Za-z._-]{0,15}$`)
)

// kindOfText returns the kind of a text in a member.
func kindOfText(name, text string) string {
	at, err := time.Parse(time.RFC3339, text)
	_, offset := at.Zone()
	format, isFormatted := formats[name]
	isUndocumented := !isFormatted && !slices.Contains(documentedNames, name)
	isSymbol := format == kindUpper || isUndocumented && symbolText.MatchString(text)
	switch {
	case text == "":
		return kindEmpty
	case format == kindUUID && uuidText.MatchString(text),
		format == kindDecimal && isDecimal(text),
		format == kindTime && err == nil && offset == 0,
		format == kindStatus && slices.Contains(statuses, text),
		format == kindSuccess && text == successText:
		return format
	case format == kindEight && isDecimal(text):
		if scale(text) == 8 {
			return kindEight
		}
		return kindDecimal
	case format == kindStatus && slices.Contains(statuses, strings.ToUpper(text)) && strings.ToLower(text) == text:
		return kindLowerStatus
	case isUndocumented && isDecimal(text): // it may be an amount
		return kindDecimal
	case isSymbol && strings.ToUpper(text) == text:
		return kindUpper
	case isSymbol && strings.ToLower(text) == text:
		return kindLower
	}
	return kindText
}

// A value is a JSON value with the order of its members.
type value struct {
	scalar   json.RawMessage // nil for an object or an array
	object   bool
	names    []string
	elements []*value // of the array, or the values of the object's members
}

// parseValue parses a text that is one JSON value.
func parseValue(text []byte) (*value, error) {
	if !json.Valid(text) {
		return nil, errors.New("it is not JSON")
	}
	from := json.NewDecoder(bytes.NewReader(text)) // of valid JSON: no more errors from here
	from.UseNumber()
	return readValue(from, 0)
}

func readValue(from *json.Decoder, depth int) (*value, error) {
	if depth > maxDepth {
		return nil, errors.New("it is nested too deeply")
	}
	token, _ := from.Token()
	delimiter, isDelimiter := token.(json.Delim)
	if !isDelimiter {
		scalar, _ := json.Marshal(token)
		return &value{scalar: scalar}, nil
	}
	v := &value{object: delimiter == '{'}
	for from.More() {
		if v.object {
			token, _ := from.Token()
			name, _ := token.(string)
			v.names = append(v.names, name)
		}
		element, err := readValue(from, depth+1)
		if err != nil {
			return nil, err
		}
		v.elements = append(v.elements, element)
	}
	_, _ = from.Token() // the end of the object or array
	return v, nil
}

// member returns the value of a member, or nil.
func (v *value) member(names ...string) *value {
	for _, name := range names {
		if v == nil {
			return nil
		}
		i := slices.Index(v.names, name)
		if i < 0 {
			return nil
		}
		v = v.elements[i]
	}
	return v
}

// text returns the text of a scalar that is one.
func (v *value) text() (string, bool) {
	if v == nil || v.scalar == nil {
		return "", false
	}
	return text(v.scalar)
}

// An observer makes the form of a response.
type observer struct {
	envelope *value          // the response, if it has a result in it
	isMapped bool            // whether a result may be a map by symbol
	mapped   bool            // whether this is a part of such a result
	texts    map[string]bool // all texts of the response, in lower case
	left     int             // the number of forms that it may still make
}

// observe returns the form of a response. mapped reports whether it is of an operation
// whose result may be a map by symbol.
func observe(v *value, mapped bool) *form {
	o := &observer{isMapped: mapped, mapped: mapped, texts: map[string]bool{}, left: maxForms}
	if v.member("result") != nil {
		o.envelope = v
	}
	o.collect(v)
	f := &form{}
	o.add(f, "", v, false)
	return f
}

func (o *observer) collect(v *value) {
	if s, ok := v.text(); ok {
		o.texts[strings.ToLower(s)] = true
	}
	for _, element := range v.elements {
		o.collect(element)
	}
}

// add adds what a value looks like to a form. byData reports whether an object has data as
// names. What is in an array is a record, and no map.
func (o *observer) add(f *form, name string, v *value, byData bool) {
	switch {
	case v.scalar != nil:
		f.addKind(kindOf(name, v.scalar))
	case v.object:
		o.addObject(f, v, byData || o.mapped && v != o.envelope && isMap(v))
	default:
		f.array = true
		for _, element := range v.elements {
			if f.element = o.form(f.element); f.element == nil {
				return
			}
			if element.object {
				o.addObject(f.element, element, false)
				continue
			}
			o.add(f.element, name, element, false)
		}
	}
}

// form returns f, or a new form if it is nil and there may be another.
func (o *observer) form(f *form) *form {
	if f == nil && o.left > 0 {
		o.left--
		f = &form{}
	}
	return f
}

func (o *observer) addObject(f *form, v *value, byData bool) {
	first := !f.object
	f.object = true
	seen := map[string]bool{}
	for i, name := range v.names {
		if v == o.envelope {
			o.mapped = o.isMapped && name == "result"
		}
		shown := o.nameOf(name, v, byData)
		at := slices.IndexFunc(f.members, func(m member) bool { return m.name == shown })
		if at < 0 {
			child := o.form(nil)
			if child == nil {
				return
			}
			at = len(f.members)
			f.members = append(f.members, member{shown, !first && shown != anyName, child})
		}
		seen[shown] = true
		child := f.members[at].form
		if isIdentifier := name == "networkId" || name == "coinId"; isIdentifier && differs(v, name) {
			child.addKind(kindOtherUUID)
			continue
		}
		inFiat := o.mapped && slices.Contains([]string{"usd", "eur", "gbp"}, strings.ToLower(name))
		if shown == anyName || name == "result" { // a value in it stands for an amount
			name = ""
		}
		if element := v.elements[i]; byData && element.object && !slices.ContainsFunc(element.names, isData) {
			o.addObject(child, element, false) // a record by symbol
			continue
		}
		o.add(child, name, v.elements[i], inFiat)
	}
	for i, m := range f.members {
		if !seen[m.name] && m.name != anyName {
			f.members[i].optional = true
		}
	}
}

// differs reports whether the identifier of a record is not that in the record beside it.
func differs(v *value, name string) bool {
	own, ok := v.member(name).text()
	other, also := v.member(strings.TrimSuffix(name, "Id"), "id").text()
	return ok && also && own != other && uuidText.MatchString(own)
}

// nameOf returns the name of a member as the form has it. A name that may be data is
// replaced: one that is not documented and does not look like a program's, or that is a
// text elsewhere in the response.
func (o *observer) nameOf(name string, of *value, byData bool) string {
	switch {
	case byData:
		return anyName
	case isKnownName(name):
		return name
	case o.texts[strings.ToLower(name)]:
		return anyName
	case programName.MatchString(name):
		return name
	case fiatName.MatchString(name) && (slices.Contains(of.names, "USD") || slices.Contains(of.names, "EUR")):
		return name
	}
	return anyName
}

// isMap reports whether an object of an undocumented result has symbols as names: none of them
// is a known one, and the values are objects, lists or amounts.
func isMap(v *value) bool {
	for i, name := range v.names {
		of := v.elements[i]
		isList := of.scalar == nil && !of.object && programName.MatchString(name)
		s, isText := of.text()
		if isKnownName(name) || slices.Contains(wrapperNames, name) || isList || isText && !isDecimal(s) && programName.MatchString(name) {
			return false
		}
	}
	return len(v.names) > 0
}

func kindOf(name string, scalar json.RawMessage) string {
	switch first := scalar[0]; {
	case first == 'n':
		return kindNull
	case first == 't' || first == 'f':
		return kindBoolean
	case first == '"':
		s, _ := text(scalar)
		return kindOfText(name, s)
	case bytes.ContainsAny(scalar, ".eE"), formats[name] == kindDecimal, formats[name] == kindEight:
		return kindNumber
	}
	return kindInteger
}

func (f *form) addKind(kind string) {
	if !slices.Contains(f.kinds, kind) {
		f.kinds = append(f.kinds, kind)
		slices.Sort(f.kinds)
	}
}

// MarshalJSON implements [json.Marshaler].
func (f *form) MarshalJSON() ([]byte, error) {
	var parts []string
	if len(f.kinds) > 0 {
		parts = append(parts, `"`+strings.Join(f.kinds, " or ")+`"`)
	}
	if f.object {
		var members []string
		for _, m := range f.members {
			if m.optional {
				m.name += "?"
			}
			inner, err := m.form.MarshalJSON()
			if err != nil {
				return nil, err
			}
			members = append(members, quote(m.name)+":"+string(inner))
		}
		parts = append(parts, "{"+strings.Join(members, ",")+"}")
	}
	if f.array {
		inner := []byte{}
		if f.element != nil {
			var err error
			if inner, err = f.element.MarshalJSON(); err != nil {
				return nil, err
			}
		}
		parts = append(parts, "["+string(inner)+"]")
	}
	if len(parts) != 1 {
		return []byte(`{"` + orName + `":[` + strings.Join(parts, ",") + `]}`), nil
	}
	return []byte(parts[0]), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *form) UnmarshalJSON(text []byte) error {
	v, err := parseValue(text)
	if err != nil {
		return err
	}
	return f.read(v)
}

var allKinds = []string{
	kindNull, kindBoolean, kindInteger, kindNumber, kindText, kindEmpty, kindUUID, kindOtherUUID, kindTime, kindDecimal, kindEight,
	kindUpper, kindLower, kindStatus, kindLowerStatus, kindSuccess,
}

// read sets a form to what its JSON says.
func (f *form) read(v *value) error {
	switch {
	case v.scalar != nil:
		return f.readKinds(v)
	case v.object && slices.Equal(v.names, []string{orName}):
		for _, part := range v.elements[0].elements {
			if err := f.read(part); err != nil {
				return err
			}
		}
	case v.object:
		return f.readMembers(v)
	case len(v.elements) > 1:
		return errors.New("an array has one form")
	default:
		f.array = true
		if len(v.elements) == 1 {
			f.element = &form{}
			return f.element.read(v.elements[0])
		}
	}
	return nil
}

func (f *form) readKinds(v *value) error {
	kinds, ok := v.text()
	if !ok {
		return fmt.Errorf("%s is not a text of kinds", v.scalar)
	}
	for kind := range strings.SplitSeq(kinds, " or ") {
		if !slices.Contains(allKinds, kind) {
			return fmt.Errorf("there is no kind %.64q, but %s", kind, strings.Join(allKinds, ", "))
		}
		f.addKind(kind)
	}
	return nil
}

func (f *form) readMembers(v *value) error {
	f.object = true
	for i, name := range v.names {
		name, optional := strings.CutSuffix(name, "?")
		child := &form{}
		if err := child.read(v.elements[i]); err != nil {
			return fmt.Errorf("%.64q: %w", name, err)
		}
		f.members = append(f.members, member{name, optional, child})
	}
	return nil
}
