package doc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/testing/measure"
)

// A text that is not JSON, is cut, or goes on after its end, is an error with its place. The values before it
// stay, except those whose end is missing.
func TestDoc_Parse_syntax(t *testing.T) {
	t.Parallel()
	const trailing = "there is more after the end"
	deep := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for _, tt := range []struct{ name, text, pointer, reason string }{
		{"nothing", "", "", "the body is empty"},
		{"spaces and nothing else", " \r\n\t ", "", "the body is empty"},
		{"a brace at the end", "{}}", "", trailing},
		{"no end of a text", `{"a":"x`, "/a", "unexpected EOF"},
		{"an end of the other kind", `{"a":[1}`, "/a", "invalid character '}'"},
		{"an end of nothing", `}`, "", "invalid character '}'"},
		{"a name twice, once in escapes", `{"a":1,"\u0061":2}`, "/a", "duplicate object member name"},
		{"a depth of 10,001", `{"a":` + deep(10_000) + "}", "/a" + strings.Repeat("/0", 511), "depth"},
		{"a broken byte outside of a text", "{\"a\":[\xff]}", "/a/0", "invalid character"},
		{"a broken byte and a name twice", "{\"b\":\"\xff\",\"a\":1,\"a\":2}", "/a", "duplicate object member name"},
		{"a byte-order mark", "\ufeff{}", "", "invalid character"},
		{"a control character in a text", "{\"a\":\"x\ny\"}", "/a", "invalid character"},
		{"no end of an escape", `{"a":"\ud83d\ud8`, "/a", "unexpected EOF"},
		{"an escape that is none, and half a pair", `{"a":"\uzzzz\ud83d"}`, "/a", "invalid"},
		{"a key as a name", `{"` + canary + `":nope}`, "/[REDACTED]", "invalid character"},
	} {
		var d doc.Doc
		wrong := d.Parse([]byte(tt.text), keys(), doc.MaxListing)
		require.NotNil(t, wrong, tt.name)
		assert.Equal(t, tt.pointer, wrong.Pointer, tt.name)
		assert.ErrorContains(t, wrong.Err, tt.reason, tt.name)
		assert.True(t, wrong.Syntax, tt.name)
		for n := range d.Root().All() {
			assert.True(t, n.Raw() == nil || n.Raw().IsValid(), "%.99s", n.Raw())
		}
	}
}

// A character that is not Unicode is read as U+FFFD, noted once, and in no text of a record.
func TestDoc_Parse_characters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\"a\":[{\"b\":\"\xff\"}]}":                             "{\"a\":[{\"b\":\"\ufffd\"}]}",
		"{\"a\":[{\"b\":\"\xe2\x82\"},\"\xe2\x82\xac\"]}":        "{\"a\":[{\"b\":\"\ufffd\"},\"\u20ac\"]}",
		`{"a":[{"b":"x\ud800"}]}`:                                `{"a":[{"b":"x\ufffd"}]}`,
		`{"a":[{"b":"\udc00\ud83d"}]}`:                           `{"a":[{"b":"\ufffd\ufffd"}]}`,
		`{"a":[{"b":"\n\ud83dxudc00\nd83d"}]}`:                   `{"a":[{"b":"\n\ufffdxudc00\nd83d"}]}`,
		`{"a":[{"b":"\ud83dx\ud83d\ude00\\ud83d\ud83d\u0041"}]}`: `{"a":[{"b":"\ufffdx\ud83d\ude00\\ud83d\ufffd\u0041"}]}`,
	} {
		n := parsed(t, text)
		assert.Equal(t, want, string(n.JSON()))
		assert.Equal(t, []string{"unexpected /a/0/b: has a character that is not Unicode"}, notes(n.Doc()))
	}
	assert.False(t, parsed(t, "{\"\xff\":1}").Member("\ufffd").IsZero())
	for _, text := range []string{`{"v":"TX\ud83d"}`, "{\"v\":\"TX\xff\"}", "{\"v\":\"TX\ufffd\"}"} {
		_, wrong := doc.RecordOf[box[string]]().One(parsed(t, text), "")
		assertError(t, wrong, "/v", "has a character that is not Unicode")
	}
}

// A name may be there twice if the caller says so.
func TestDoc_Parse_duplicates(t *testing.T) {
	t.Parallel()
	var d doc.Doc
	require.Nil(t, d.Parse([]byte(`{"a":1,"b":{"c":"\ud83d","c":2},"a":3}`), keys(), doc.MaxListing,
		jsontext.AllowDuplicateNames(true)))
	assert.Equal(t, 3, d.Root().Len())
	require.NotNil(t, d.Parse([]byte(`{"a":1,"a":3}`), keys(), doc.MaxListing), "only for that text")
}

// Values before an error can be used, those that lack their end have no JSON.
func TestDoc_Parse_broken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text   string
		result string // as JSON; empty for none
		name   string
	}{
		{`{"name":"x","result":{"a":[1, 2]},"meta":`, `{"a":[1, 2]}`, "x"},
		{`{"name":"x","result":{"a":[1, 2]`, ``, "x"},
		{`{"name":"x","result":7,"result":8}`, `7`, "x"},
		{`{"name":"x`, ``, ""},
	} {
		var d doc.Doc
		require.NotNil(t, d.Parse([]byte(tt.text), keys(), doc.MaxListing))
		assert.Equal(t, tt.result, string(d.Root().Member("result").JSON()), tt.text)
		assert.Equal(t, tt.name, d.Root().Member("name").Text(), tt.text)
		assert.Nil(t, d.Root().Raw())
	}
	var d doc.Doc
	require.NotNil(t, d.Parse([]byte("nope"), keys(), doc.MaxListing))
	assert.True(t, d.Root().IsZero())
}

// A Doc reads a text as if it had read none before.
func TestDoc_Parse_again(t *testing.T) {
	t.Parallel()
	d := &doc.Doc{}
	for _, before := range []string{`[{"v":1,"x":2},{}]`, `{"a":{"b":[`, ``, `[1`, wholeJSON()} {
		_ = d.Parse([]byte(before), keys(), doc.MaxListing)
		if n := d.Root(); n.Kind() == '[' {
			_, _ = doc.RecordOf[box[int]]().Many(n)
		}
		require.Nil(t, d.Parse([]byte(wholeJSON()), keys(), doc.MaxListing))
		got, wrong := wholeRecord.One(d.Root(), "w-1")
		require.Nil(t, wrong)
		assert.Equal(t, documentedWhole(), *got)
		assert.Empty(t, d.Notes())
		assert.Nil(t, d.FirstSkipped())
	}
}

// The memory of a tree is bounded, whatever the text: 24 bytes a value, at most as many as are read, and what
// jsontext takes
// to find duplicate names. The test is not parallel, because it measures.
func TestDoc_Parse_cost(t *testing.T) {
	const k, most = 1 << 10, 1 << 16
	for _, tt := range []struct {
		name, text string
		most       uint64 // bytes
	}{
		{"depth of arrays", strings.Repeat("[", 64*k) + strings.Repeat("]", 64*k), 3 << 20},
		{"depth of objects", strings.Repeat(`{"a":`, 64*k) + "1" + strings.Repeat("}", 64*k), 6 << 20},
		{"more elements than are read", "[" + strings.Repeat("1,", 256*k) + "1]", 2 << 20},
		{"many members in one object", manyMembers(32 * k), 9 << 20},
		{"one text of commas", `"` + strings.Repeat(",", 512*k) + `"`, 2 << 20},
		{"a long number", strings.Repeat("9", 512*k), 64 * k},
		{"long amounts", "[" + strings.Repeat(`{"v":`+strings.Repeat("9", 64*k)+"},", 7) + "{}]", 64 * k},
		{"elements that are no records, with an error each", "[" + strings.Repeat("1,", 32*k) + "1]", 4 << 20},
	} {
		text := []byte(tt.text)
		got := measure.Allocated(func() {
			var d doc.Doc
			if d.Parse(text, redact.Redactor{}, most) == nil && d.Root().Kind() == '[' {
				_, _ = doc.RecordOf[box[decimal.Decimal]]().Many(d.Root())
			}
		})
		assert.Less(t, got, uint64(measure.Slack())*tt.most, tt.name)
	}
}

func manyMembers(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, `,"%06d":1`, i)
	}
	return "{" + text.String()[1:] + "}"
}

func TestNode(t *testing.T) {
	t.Parallel()
	root := parsed(t, " { \"a\" : 1 ,\n"+`"\u0062":"x\n" , "c/d": { "e":[ true , [ ] ]} , "":null, "s":"2e1" } `)
	var lines []string
	for n := range root.All() {
		lines = append(lines, strings.Join([]string{
			n.Pointer(), n.Name(), n.Kind().String(), string(n.Raw()), n.Text(),
			n.Scalar(),
		}, "|"))
	}
	assert.Equal(t, []string{
		`||{|` + string(root.Raw()) + "||",
		`/a|a|number|1||1`,
		"/b|b|string|\"x\\n\"|x\n|x\n",
		`/c~1d|c/d|{|{ "e":[ true , [ ] ]}||`,
		`/c~1d/e|e|[|[ true , [ ] ]||`,
		`/c~1d/e/0||true|true||`,
		`/c~1d/e/1||[|[ ]||`,
		`/||null|null||`,
		`/s|s|string|"2e1"|2e1|2e1`,
	}, lines)

	e := root.Member("c/d").Member("e")
	assert.Equal(t, 5, root.Len())
	assert.Equal(t, 2, e.Len())
	for range root.Parts() {
		break // a caller may stop
	}
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"a"}, "/a"}, {[]string{"s", "a"}, "/s"}, {[]string{"x", "b", "a"}, "/b"}, {[]string{"x"}, ""}, {nil, ""},
	} {
		assert.Equal(t, tt.want, root.Member(tt.names...).Pointer())
	}
	assert.True(t, e.Member("0").IsZero(), "an element has no name")

	for _, tt := range []struct {
		n                        doc.Node
		isNamedB, isX, containsX bool
		beginning                string
	}{
		{root.Member("b"), true, true, true, "x"},
		{root.Member("s"), false, false, false, "2"},
		{root.Member("a"), false, false, false, ""},
		{e, false, false, false, ""},
		{parsed(t, `["\u0078\u00e9"]`).Only(), false, false, true, "x"},
	} {
		assert.Equal(t, []bool{tt.isNamedB, tt.isX, tt.containsX},
			[]bool{tt.n.IsNamed("b"), tt.n.Is("x\n"), tt.n.Contains("x")}, tt.n.Pointer())
		assert.Equal(t, tt.beginning, tt.n.Beginning(1))
	}

	amount, err := root.Member("s").Amount()
	require.NoError(t, err)
	assert.Equal(t, "20", amount.String())

	var none doc.Node
	assert.True(t, none.IsZero())
	assert.Zero(t, none.Kind())
	assert.Nil(t, none.Raw())
	assert.Nil(t, none.JSON())
	assert.Empty(t, none.Name()+none.Text()+none.Scalar()+none.Pointer())
	assert.Zero(t, none.Len())
	assert.True(t, none.Member("a").IsZero())
	assert.Empty(t, slices.Collect(none.All()))
	assert.False(t, none.Holds())
	_, err = none.Amount()
	assert.EqualError(t, err, "is not JSON, not an amount")
	none.Note(doc.Mismatch)
}

// A value holds something unless it is nothing but null, empty texts and empty arrays and objects.
func TestNode_Holds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"a": [1, 2]}`: true, `[0]`: true, `[[],{"a":[null,false]}]`: true, `{"a":{"b":"x"}}`: true, `["\u0000"]`: true,
		`"{}"`: true, `-1`: true,
		`[[]]`: false, `[null]`: false, `{"a":{"b\"1":[ "" , null ]}, "true" : [] }`: false, `""`: false, `null`: false,
		`{}`: false, "[ ]": false,
	} {
		assert.Equal(t, want, parsed(t, text).Holds(), text)
	}
}

// A text has at most so many values, at all depths together.
func TestDoc_Parse_most(t *testing.T) {
	t.Parallel()
	for fits, large := range map[string]string{
		`[1,2,3,4,5,6]`:              `[1,2,3,4,5,6,7]`,
		`{"x":[1],"result":[1,2,3]}`: `{"x":[1],"result":[1,2,3,4]}`,
		`{"a":1,"b":{},"c":[4,5,6]}`: `{"a":1,"b":{},"c":[4,5,6],"d":7}`,
		`[[[[[[[]]]]]]]`:             `[[[[[[[0]]]]]]]`,
	} {
		var d doc.Doc
		assert.Nil(t, d.Parse([]byte(fits), keys(), 7), fits)
		assertError(t, d.Parse([]byte(large), keys(), 7), "", "has more than 7 members and elements")
	}
}

// Pointers are bounded, and end between two characters.
func TestNode_Pointer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"` + strings.Repeat("n", 1<<10) + `":1}`:                           "/" + strings.Repeat("n", 1<<10-1),
		`{"` + strings.Repeat("é", 1<<10) + `":1}`:                           "/" + strings.Repeat("é", 511),
		strings.Repeat(`{"name":`, 9_000) + "1" + strings.Repeat("}", 9_000): strings.Repeat("/name", 300)[:1<<10],
		`{"` + canary + `":{"x\u0043` + canary[1:] + `y":1}}`:                "/[REDACTED]/x[REDACTED]y",
	} {
		all := slices.Collect(parsed(t, text).All())
		assert.Equal(t, want, all[len(all)-1].Pointer())
	}
}

// The value of an error is bounded and without keys.
func TestNode_Errorf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 40)
	for _, tt := range []struct{ name, value, want string }{
		{"text", `"12,5"`, `"12,5"`},
		{"text with escapes", `"\u0031\n\""`, `"1\n\""`},
		{"nothing", `""`, `""`},
		{"null, whose kind says enough", `null`, ``},
		{"an array", `["x"]`, ``},
		{"a number without an end", strings.Repeat("9", 200), strings.Repeat("9", 64)},
		{"long text", `"` + long + `"`, `"` + long[:58] + `…"`},
		{"text of 64 bytes", `"` + strings.Repeat("a", 62) + `"`, `"` + strings.Repeat("a", 62) + `"`},
		{"text of 65 bytes", `"` + strings.Repeat("a", 63) + `"`, `"` + strings.Repeat("a", 59) + `…"`},
		{"a character across the end", `"` + strings.Repeat("a", 62) + `😀"`, `"` + strings.Repeat("a", 59) + `…"`},
		{"a key", `"` + canary + `"`, `"[REDACTED]"`},
		{"a key in escapes", `"\u0043` + canary[1:] + `"`, `"[REDACTED]"`},
		{"a key across the end", `"` + strings.Repeat("x", 55) + canary + `"`, `"` + strings.Repeat("x", 55) + `[RED…"`},
		{"a key after the end", `"` + strings.Repeat("x", 70) + canary + `"`, `"` + strings.Repeat("x", 59) + `…"`},
	} {
		wrong := parsed(t, `{"v":`+tt.value+`}`).Member("v").Errorf("is %s", "odd")
		assert.Equal(t, doc.Error{Pointer: "/v", Value: tt.want, Err: wrong.Err}, *wrong, tt.name)
		assert.Equal(t, strings.TrimPrefix(tt.want+" is odd", " "), wrong.Reason(), tt.name)
	}
}

// A key that a service repeats is in no text.
func TestNode_key(t *testing.T) {
	t.Parallel()
	n := parsed(t, `{"`+canary+`":["a `+canary+` b","\u0043`+canary[1:]+`"]}`)
	assert.Equal(t, `{"[REDACTED]":["a [REDACTED] b","[REDACTED]"]}`, string(n.JSON()))
	text := []byte(`["abc"]`)
	var d doc.Doc
	require.Nil(t, d.Parse(text, redact.Redactor{}, doc.MaxListing))
	copied := d.Root().JSON()
	clear(text)
	assert.Equal(t, `["abc"]`, string(copied), "JSON is a copy")
	var texts []string
	for inner := range n.All() {
		texts = append(texts, inner.Name(), inner.Text(), inner.Scalar())
	}
	assert.NotContains(t, strings.Join(texts, " "), canary)
	assert.Contains(t, texts, "a [REDACTED] b")
}
