package strictjson_test

import (
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// readDocument reads an object with any members to the end of its text.
func readDocument(text string, o strictjson.Options) *strictjson.Decoder {
	d := decoderOf(text, o)
	d.BeginDocument()
	for d.More() {
		d.Name()
		d.Skip()
	}
	d.End()
	d.EndDocument()
	return d
}

func TestDecoder_document(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{}", " \r\n\t{ } \n", `{"a":1,"b":{"c":[null,true,"x",{}]}}`, `{"a":[],"A":[],"á":[],"":[]}`} {
		d := readDocument(text, strictjson.Options{})
		assert.Nil(t, d.Err(), text)
		assert.Equal(t, strictjson.Present, d.Content())
	}
	for _, tt := range []struct{ name, text, reason string }{
		{"null", "null", "is null, not an object"},
		{"true", "true", "is a boolean, not an object"},
		{"false", "false", "is a boolean, not an object"},
		{"a text", `"x"`, "is text, not an object"},
		{"a number", "-1", "is a number, not an object"},
		{"an empty array", "[]", "is an array, not an object"},
		{"an array of an object", `[{"a":[]}]`, "is an array, not an object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertError(t, readDocument(tt.text, strictjson.Options{}), "", tt.reason)
		})
	}
}

// What is not JSON, not all of it, or more than it.
func TestDecoder_syntax(t *testing.T) {
	t.Parallel()
	const trailing = "there is more after the end"
	deep := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for _, tt := range []struct{ name, text, pointer, reason string }{
		{"nothing", "", "", "the body is empty"},
		{"spaces and nothing else", " \r\n\t ", "", "the body is empty"},
		{"a letter at the end", "{}x", "", trailing},
		{"a brace at the end", "{}}", "", trailing},
		{"a second document", "{}{}", "", trailing},
		{"a second document on a line of its own", "{}\n{}", "", trailing},
		{"a NUL at the end", "{}\x00", "", trailing},
		{"a page after the document", "{}<!-- served by x -->", "", trailing},
		{"no end", `{"a":1`, "", "unexpected EOF"},
		{"no end of a text", `{"a":"x`, "/a", "unexpected EOF"},
		{"a name twice", `{"a":1,"a":2}`, "/a", "duplicate object member name"},
		{"a name twice, first as null", `{"a":null,"a":2}`, "/a", "duplicate object member name"},
		{"a name twice, once in escapes", `{"a":1,"\u0061":2}`, "/a", "duplicate object member name"},
		{"a name twice within", `{"a":{"b":{"c":1,"c":2}}}`, "/a/b/c", "duplicate object member name"},
		{"a name twice within an array", `{"a":[{"b":1,"b":2}]}`, "/a/0/b", "duplicate object member name"},
		{"a depth of 10,001", `{"a":` + deep(10_000) + "}", "", "depth"},
		{"a depth of 1,000,000", `{"a":` + deep(1_000_000) + "}", "", "depth"},
		{"a depth of 1,000,000 objects", strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_000), "", "depth"},
		{"a broken byte", "{\"a\":\"x\xff\"}", "/a", "invalid UTF-8"},
		{"half a character", "{\"a\":\"x\xe4\xb8\"}", "/a", "invalid UTF-8"},
		{"a lone surrogate", `{"a":"x\ud800"}`, "/a", "invalid surrogate pair"},
		{"two halves of a pair the wrong way round", `{"a":"\udc00\ud800"}`, "/a", "invalid surrogate pair"},
		{"a broken byte within", "{\"a\":[{\"b\":\"\xff\"}]}", "/a/0/b", "invalid UTF-8"},
		{"a broken byte in a name", "{\"\xff\":1}", "", "invalid UTF-8"},
		{"a lone surrogate in a name", `{"\ud800":1}`, "", "invalid surrogate pair"},
		{"a page", "<!DOCTYPE html>", "", "invalid character '<'"},
		{"plain words", "OK", "", "invalid character 'O'"},
		{"a byte-order mark", mark + "{}", "", "invalid character"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "", "invalid"},
		{"single quotes", `{'a':[]}`, "", "invalid character"},
		{"a comment", `/* x */{"a":[]}`, "", "invalid character"},
		{"a comma at the end", `{"a":1,}`, "", "invalid character"},
		{"no comma", `{"a":1 "b":2}`, "", "invalid character"},
		{"no value", `{"a":}`, "/a", "invalid character"},
		{"a control character in a text", "{\"a\":\"x\ny\"}", "/a", "invalid character"},
		{"a number with a leading zero", `{"a":01}`, "", "invalid character"},
		{"NaN", `{"a":NaN}`, "/a", "invalid character"},
		{"another bracket", `{]`, "", "invalid character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := readDocument(tt.text, strictjson.Options{})
			require.NotNil(t, d.Err())
			if !strings.HasPrefix(tt.name, "a depth of ") { // the pointer is as deep, and cut
				assert.Equal(t, tt.pointer, d.Err().Pointer)
			}
			assert.ErrorContains(t, d.Err().Err, tt.reason)
			assert.True(t, d.Err().Syntax)
			assert.LessOrEqual(t, len(d.Err().Pointer), 1<<10)
		})
	}
}

// A text that is cut is never read without an error, whatever was read of it.
func TestDecoder_truncated(t *testing.T) {
	t.Parallel()
	body := `{"result":[` + wholeJSON() + "," + wholeJSON() + `]}`
	read := func(text string) ([]whole, *strictjson.Decoder) {
		d := decoderOf(text, strictjson.Options{})
		d.BeginDocument()
		d.Name()
		all := strictjson.Many(wholeRecord)(d)
		d.End()
		d.EndDocument()
		return all, d
	}
	for n := range len(body) {
		_, d := read(body[:n])
		require.NotNil(t, d.Err(), "cut after %d bytes", n)
		require.True(t, d.Err().Syntax)
	}
	all, d := read(body)
	require.Nil(t, d.Err())
	assert.Equal(t, []whole{documentedWhole(), documentedWhole()}, all)
	assert.Equal(t, len(body), d.Offset())
}

// What was read of a value is its text, without what is before it.
func TestDecoder_Since(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"a value", `{"a":[1, 2],"b":3}`, `[1, 2]`},
		{"spaces before and after", "{\"a\" \n:\t{} ,\"b\":3}", `{}`},
		{"the rest is missing", `{"a":[1, 2]`, `[1, 2]`},
		{"its end is missing", `{"a":[1, 2`, `[1, 2`},
		{"none of it is there", `{"a":`, ""},
	} {
		d := decoderOf(tt.text, strictjson.Options{})
		d.BeginDocument()
		d.Name()
		start := d.Offset()
		d.Skip()
		assert.Equal(t, tt.want, string(d.Since(start)), tt.name)
	}
	d := decoderOf(`[1 , {"a":2}]`, strictjson.Options{})
	d.Begin('[')
	d.Skip()
	start := d.Offset()
	d.Skip()
	assert.Equal(t, `{"a":2}`, string(d.Since(start)), "an element")
}

// After an error every method returns a zero value, and the first error stays.
func TestDecoder_afterError(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(d *strictjson.Decoder){
		"a wrong value":    func(d *strictjson.Decoder) { d.Begin('{') },
		"a set error":      func(d *strictjson.Decoder) { d.SetErr(&strictjson.Error{Pointer: "/x", Err: io.EOF}) },
		"a missing member": func(d *strictjson.Decoder) { d.FailMissing("m") },
		"a failure":        func(d *strictjson.Decoder) { d.Fail(io.EOF) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &strictjson.Notes{}
			d := decoderOf(`[1,"2024-01-02T03:04:05Z",true,{"id":1}]`, strictjson.Options{Notes: notes})
			fail(d)
			first := d.Err()
			require.NotNil(t, first)
			offset := d.Offset()
			assert.Nil(t, d.Name())
			assert.Nil(t, d.Value())
			assert.Nil(t, strictjson.Raw(d))
			assert.Zero(t, d.Peek())
			assert.False(t, d.More())
			assert.False(t, d.Begin('['))
			assert.False(t, d.End())
			assert.Empty(t, strictjson.Many(partRecord)(d))
			assert.Equal(t, make([]part, 1), strictjson.OneOrMany(partRecord)(d))
			assert.Zero(t, *strictjson.One(partRecord)(d))
			d.Skip()
			d.SkipUnknown()
			assert.Equal(t, offset, d.Offset())
			d.BeginDocument()
			d.EndDocument()
			d.Fail(strictjson.ErrMismatch)
			d.FailMissing("other")
			d.SetErr(&strictjson.Error{Err: strictjson.ErrMismatch})
			assert.Same(t, first, d.Err())
			assert.Empty(t, notes.All())
			assert.Equal(t, strictjson.Present, d.Content())
		})
	}
}

func TestDecoder_Reset(t *testing.T) {
	t.Parallel()
	d := decoderOf(`[`+wholeJSON()+`,`+wholeJSON()+`,{"id":1}]`, strictjson.Options{Notes: &strictjson.Notes{}, ExpectID: "w-1"})
	strictjson.Many(wholeRecord)(d)
	d.SetContent(strictjson.NoRecord)
	require.Len(t, d.LeftOut(), 1)
	d.Fail(io.EOF)
	d.Reset([]byte(wholeJSON()), strictjson.Options{ExpectID: "w-1"})
	assert.Nil(t, d.Err())
	assert.Nil(t, d.Notes)
	assert.Empty(t, d.LeftOut())
	assert.Equal(t, strictjson.Present, d.Content())
	assert.Zero(t, d.Offset())
	got := strictjson.One(wholeRecord)(d)
	d.EndDocument()
	require.Nil(t, d.Err())
	assert.Equal(t, documentedWhole(), *got)
	d.SetContent(strictjson.EmptyResult)
	d.Fail(io.EOF)
	d.Reset([]byte(object(wholeMembers(), "id", `"x"`)), strictjson.Options{})
	assert.Nil(t, d.Err())
	assert.Equal(t, strictjson.Present, d.Content())
	assert.Equal(t, "x", strictjson.One(wholeRecord)(d).ID)
	assert.Nil(t, d.Err())
}

func TestDecoder_SetErr(t *testing.T) {
	t.Parallel()
	d := decoderOf(`1`, strictjson.Options{})
	d.SetErr(nil)
	assert.Nil(t, d.Err())
	assert.Equal(t, "1", string(d.Value()))
	err := &strictjson.Error{Pointer: "/a", Err: io.EOF}
	d.SetErr(err)
	assert.Same(t, err, d.Err())
}

func TestDecoder_Begin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind         jsontext.Kind
		text, reason string
	}{
		{'[', `{}`, "is an object, not an array"},
		{'[', `{"a":[1]}`, "is an object, not an array"},
		{'[', `null`, "is null, not an array"},
		{'{', `[]`, "is an array, not an object"},
	} {
		d := decoderOf(`{"a":`+tt.text+`}`, strictjson.Options{})
		d.BeginDocument()
		d.Name()
		assert.False(t, d.Begin(tt.kind))
		assertError(t, d, "/a", tt.reason)
	}
	d := decoderOf(`[ ]`, strictjson.Options{})
	assert.True(t, d.Begin('['))
	assert.False(t, d.More())
	assert.True(t, d.End())
	d.EndDocument()
	assert.Nil(t, d.Err())
}

func TestDecoder_Name(t *testing.T) {
	t.Parallel()
	d := decoderOf(`{"plain":1,"\u0061\"":2,"":3}`, strictjson.Options{})
	d.BeginDocument()
	for _, want := range []string{"plain", `a"`, ""} {
		assert.Equal(t, jsontext.Kind('"'), d.Peek())
		assert.Equal(t, want, string(d.Name()))
		assert.Equal(t, jsontext.Kind('0'), d.Peek())
		d.Skip()
	}
	assert.False(t, d.More())
	assert.True(t, d.End())
	assert.Nil(t, d.Err())
}

func TestKindName(t *testing.T) {
	t.Parallel()
	for kind, want := range map[jsontext.Kind]string{
		'n': "null", 't': "a boolean", 'f': "a boolean", '"': "text", '0': "a number", '{': "an object", '[': "an array", 0: "not JSON", '}': "not JSON",
	} {
		assert.Equal(t, want, strictjson.KindName(kind))
	}
}

// The pointer of an error and of a note is bounded, whatever a service names a
// member, and ends between two characters.
func TestDecoder_pointer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, member string
		want         int
	}{
		{"a pointer of 1 KiB", strings.Repeat("n", 1<<10-1), 1 << 10},
		{"one byte more", strings.Repeat("n", 1<<10), 1 << 10},
		{"much more", strings.Repeat("n", 1<<20), 1 << 10},
		{"a character across the bound", strings.Repeat("é", 1<<10), 1<<10 - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			notes := &strictjson.Notes{}
			d := decoderOf(`{"`+tt.member+`":null}`, strictjson.Options{Notes: notes})
			d.BeginDocument()
			d.Name()
			d.SkipUnknown()
			d.Fail(io.EOF)
			require.NotNil(t, d.Err())
			assert.Len(t, d.Err().Pointer, tt.want)
			assert.True(t, strings.HasPrefix("/"+tt.member, d.Err().Pointer))
			assert.Equal(t, []strictjson.Note{{Kind: strictjson.UnknownField, Pointer: d.Err().Pointer}}, notes.All())
		})
	}
	t.Run("of many members one in another", func(t *testing.T) {
		t.Parallel()
		d := readDocument(strings.Repeat(`{"name":`, 9_000)+"nope", strictjson.Options{})
		require.NotNil(t, d.Err())
		assert.Equal(t, strings.Repeat("/name", 300)[:1<<10], d.Err().Pointer)
	})
	t.Run("names with a slash and a tilde", func(t *testing.T) {
		t.Parallel()
		d := decoderOf(`{"a/b~c":null}`, strictjson.Options{})
		d.BeginDocument()
		d.Name()
		d.Begin('[')
		assertError(t, d, "/a~1b~0c", "is null, not an array")
		d = decoderOf(`{"x":1}`, strictjson.Options{})
		d.BeginDocument()
		d.Name()
		d.Skip()
		d.End()
		d.FailMissing("a/b")
		assertError(t, d, "/a~1b", "is missing")
	})
}

// A key that a service repeats as the name of a member is in no pointer.
func TestDecoder_pointerWithKey(t *testing.T) {
	t.Parallel()
	for name, member := range map[string]string{
		"the key":               canary,
		"the key in a name":     "x" + canary + "y",
		"in escapes":            `\u0043` + canary[1:],
		"beyond the bound":      strings.Repeat("n", 1<<10-8) + canary,
		"twice":                 canary + canary,
		"within another member": "a\":{\"" + canary,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &strictjson.Notes{}
			for _, value := range []string{"1", "nope", `{"b":1,"b":2}`, "\"\xff\""} {
				d := decoderOf(`{"`+member+`":`+value+`}`+"}", strictjson.Options{Redactor: redactor(), Notes: notes})
				d.BeginDocument()
				for d.More() {
					d.Name()
					if d.Peek() == '{' && value != `{"b":1,"b":2}` {
						d.Begin('{')
						d.Name()
					}
					d.SkipUnknown()
					d.Fail(io.EOF)
				}
				require.NotNil(t, d.Err())
				assert.NotEmpty(t, d.Err().Pointer)
				assertKeyAbsent(t, d.Err().Pointer+d.Err().Err.Error())
			}
			for _, note := range notes.All() {
				assertKeyAbsent(t, note.Pointer)
			}
		})
	}
	d := decoderOf(`{"first/second":nope}`, strictjson.Options{Redactor: redact.New(redact.NewSecret("first/second"))})
	d.BeginDocument()
	d.Name()
	d.Skip()
	assertSyntax(t, d, "/[REDACTED]", "invalid character")
	d = decoderOf(`{"`+canary+`":1}`, strictjson.Options{Redactor: redactor()})
	d.FailMissing(canary)
	assertError(t, d, "/[REDACTED]", "is missing")
}

// assertKeyAbsent asserts that not even the first half of the key is in a text.
func assertKeyAbsent(t *testing.T, text string) {
	t.Helper()
	assert.NotContains(t, text, canary[:len(canary)/2])
}

// What depth costs is bounded, though the place of the error is deep. This test is
// not parallel, because it measures.
func TestDecoder_depth_cost(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		most       uint64
	}{
		{"arrays", strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000), 1<<20 + 64<<10},
		{"objects, whose names are kept to find duplicates", strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_000), 8 << 20},
	} {
		d := decoderOf(tt.text, strictjson.Options{})
		assert.Less(t, allocated(func() { strictjson.Raw(d) }), tt.most, "%s", tt.name)
		require.NotNil(t, d.Err())
	}
}
