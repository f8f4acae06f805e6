package strictjson

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// What a member beside a list tells of it, by its name.
type counter int8

const (
	noCounter counter = iota
	records           // that there are
	page              // from 1, or how many there are
	size              // of a page
	offset            // of the first record
	next              // a following page
)

// counterOf knows names in camel case and with underscores. One in capitals can be the symbol of a coin.
func counterOf(name string) counter {
	if name == strings.ToUpper(name) {
		return noCounter
	}
	switch plain(name) {
	case "total", "totalcount", "count":
		return records
	case "page", "pages", "currentpage", "totalpages", "lastpage":
		return page
	case "limit", "perpage", "pagesize":
		return size
	case "offset":
		return offset
	case "next", "nextpage", "nextcursor", "cursor", "hasmore":
		return next
	default:
		return noCounter
	}
}

func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// IsOfPage reports whether a member has a name that tells of a page: a list beside it can be a part of
// what there is.
func IsOfPage(name string) bool { return counterOf(name) != noCounter }

// FailPage records an error if anything in the whole text tells of more than the records that came in a
// list: at the first counter that does. The list is at a pointer from the value that was read last. A text
// with an error is not looked at. Nothing of the text is kept.
func (d *Decoder) FailPage(list jsontext.Pointer, came int, err error) {
	asIs := jsontext.AllowDuplicateNames(true) // which are found by d
	if d.err != nil || !jsontext.Value(d.whole).IsValid(asIs) {
		return
	}
	p := pageReader{d: d, text: jsontext.NewDecoder(bytes.NewBuffer(d.whole), asIs), came: came, err: err}
	p.read(slices.Collect((d.pointer() + list).Tokens()))
	switch {
	case p.more != nil:
		d.err = p.more
	case !p.isAll:
		d.err = p.full
	}
}

// A pageReader reads what is beside a list in a valid text.
type pageReader struct {
	d     *Decoder
	text  *jsontext.Decoder
	came  int
	err   error
	more  *Error // at the first counter that tells of more; nil for none
	full  *Error // at the first size of a page that is full; nil for none
	isAll bool   // a counter of records is of those that came
}

// read reads an object, or an array that the list is in. The list is at the path, or elsewhere if that is
// nil. Other arrays are passed over: they are lists of their own; so is what limits the rate of requests.
func (p *pageReader) read(path []string) {
	kind := p.text.PeekKind()
	_, _ = p.text.ReadToken() // valid, as all that follows
	end := jsontext.Kind('}')
	if kind == '[' {
		end = ']'
	}
	for index := 0; p.text.PeekKind() != end; index++ {
		name := strconv.Itoa(index)
		if kind == '{' {
			quoted, _ := p.text.ReadValue()
			name = string(Unquote(quoted))
		}
		value := p.text.PeekKind()
		onPath := len(path) > 0 && path[0] == name
		switch {
		case onPath && len(path) > 1 && (value == '{' || value == '['):
			p.read(path[1:])
		case kind == '{' && value == '{' && !onPath && !strings.HasPrefix(plain(name), "ratelimit"):
			p.read(nil)
		case kind == '{' && !onPath && IsOfPage(name):
			p.count(counterOf(name))
		default:
			_ = p.text.SkipValue()
		}
	}
	_, _ = p.text.ReadToken()
}

// count reads the value of a counter.
func (p *pageReader) count(c counter) {
	value, _ := p.text.ReadValue()
	text := string(value)
	if value.Kind() == '"' {
		text = string(Unquote(value))
	}
	number, _ := strconv.Atoi(text) // or 0
	switch {
	case c == size && number == p.came && number > 0:
		p.at(&p.full, value)
	case c == records && number > p.came, c == page && number > 1, c == offset && number > 0,
		c == next && !slices.Contains([]string{"", "0", "null", "false"}, text) && value.Kind() != '[':
		p.at(&p.more, value)
	}
	p.isAll = p.isAll || c == records && number == p.came
}

// at keeps the first error of a kind.
func (p *pageReader) at(first **Error, value jsontext.Value) {
	if *first == nil {
		*first = &Error{Pointer: p.d.cleanPointer(p.text.StackPointer()), Value: shown(value, p.d.Redactor), Err: p.err}
	}
}
