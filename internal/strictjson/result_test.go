package strictjson_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/strictjson"
)

const several = "is one of several records where one is expected"

func TestOne(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"a record": wholeJSON(), "an array of one record": " [ " + wholeJSON() + " ] "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, d := readWholeRecord(text, strictjson.Options{})
			require.Nil(t, d.Err())
			assert.Equal(t, documentedWhole(), *got)
			assert.Equal(t, strictjson.Present, d.Content())
		})
	}
	t.Run("an empty array is no record", func(t *testing.T) {
		t.Parallel()
		got, d := readWholeRecord("[ ]", strictjson.Options{})
		require.Nil(t, d.Err())
		assert.Nil(t, got)
		assert.Equal(t, strictjson.NoRecord, d.Content())
	})
	for _, tt := range []struct{ name, text, pointer, reason string }{
		{"an array of two records", "[" + wholeJSON() + "," + wholeJSON() + "]", "/0", several},
		{"an array of a record and another value", "[" + wholeJSON() + ",1]", "/0", several},
		{"an array of null", "[null]", "/0", "is null, not an object"},
		{"an array of an array", "[[]]", "/0", "is an array, not an object"},
		{"null", "null", "", "is null, not an object"},
		{"a text", `"x"`, "", "is text, not an object"},
		{"a number", "1", "", "is a number, not an object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, d := readWholeRecord(tt.text, strictjson.Options{})
			assertError(t, d, tt.pointer, tt.reason)
			assert.Equal(t, strictjson.Present, d.Content())
		})
	}
	for _, text := range []string{"[", "[}", "[" + wholeJSON(), "[" + wholeJSON() + "}"} {
		_, d := readWholeRecord(text, strictjson.Options{})
		require.NotNil(t, d.Err(), text)
		assert.True(t, d.Err().Syntax, text)
		assert.Equal(t, strictjson.Present, d.Content(), text)
	}
}

func TestMany(t *testing.T) {
	t.Parallel()
	read := strictjson.Many(strictjson.RecordOf[box[int]]())
	t.Run("in the order of the text", func(t *testing.T) {
		t.Parallel()
		got, d := readWhole(boxes("3", "1", "2"), strictjson.Options{}, read)
		require.Nil(t, d.Err())
		assert.Equal(t, []box[int]{{3}, {1}, {2}}, got)
		assert.Equal(t, strictjson.Present, d.Content())
	})
	t.Run("an empty list is empty, not nil", func(t *testing.T) {
		t.Parallel()
		got, d := readWhole("[ ]", strictjson.Options{}, read)
		require.Nil(t, d.Err())
		assert.Equal(t, []box[int]{}, got)
		assert.Equal(t, strictjson.EmptyResult, d.Content())
	})
	for _, tt := range []struct{ name, text, pointer, reason string }{
		{"null", "null", "", "is null, not an array"},
		{"an empty object", "{}", "", "is an object, not an array"},
		{"a record", `{"v":1}`, "", "is an object, not an array"},
		{"an element that is null", `[{"v":1},null]`, "/1", "is null, not an object"},
		{"an element that is an array", `[{"v":1},[]]`, "/1", "is an array, not an object"},
		{"an element that is text", `[{"v":1},"x"]`, "/1", "is text, not an object"},
		{"an element that is a number", `[{"v":1},1]`, "/1", "is a number, not an object"},
		{"one bad element of 500", "[" + strings.Repeat(`{"v":1},`, 417) + `{"v":"x"}` + strings.Repeat(`,{"v":1}`, 82) + "]", "/417/v", "is text, not a number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, d := readWhole(tt.text, strictjson.Options{}, read)
			assertError(t, d, tt.pointer, tt.reason)
			assert.Equal(t, strictjson.Present, d.Content())
		})
	}
	for _, text := range []string{"[", "[}", `[{"v":1}`} {
		_, d := readWhole(text, strictjson.Options{}, read)
		require.NotNil(t, d.Err(), text)
		assert.True(t, d.Err().Syntax, text)
		assert.Equal(t, strictjson.Present, d.Content(), text)
	}
}

func TestOneOrMany(t *testing.T) {
	t.Parallel()
	read := strictjson.OneOrMany(strictjson.RecordOf[box[int]]())
	for _, tt := range []struct {
		text    string
		want    []box[int]
		content strictjson.Content
	}{
		{`{"v":1}`, []box[int]{{1}}, strictjson.Present},
		{`[{"v":1}]`, []box[int]{{1}}, strictjson.Present},
		{`[{"v":1},{"v":2}]`, []box[int]{{1}, {2}}, strictjson.Present},
		{`[]`, []box[int]{}, strictjson.EmptyResult},
	} {
		got, d := readWhole(tt.text, strictjson.Options{}, read)
		require.Nil(t, d.Err(), tt.text)
		assert.Equal(t, tt.want, got, tt.text)
		assert.Equal(t, tt.content, d.Content(), tt.text)
	}
	for _, tt := range []struct{ text, pointer, reason string }{
		{`null`, "", "is null, not an object"},
		{`{}`, "/v", "is missing"},
		{`[{}]`, "/0/v", "is missing"},
		{`"x"`, "", "is text, not an object"},
	} {
		_, d := readWhole(tt.text, strictjson.Options{}, read)
		assertError(t, d, tt.pointer, tt.reason)
	}
}

func TestRaw(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text    string
		content strictjson.Content
	}{
		{`{"a": [1, 2]}`, strictjson.Present},
		{`[0]`, strictjson.Present},
		{`[[],{"a":[null,false]}]`, strictjson.Present},
		{`{"a":{"b":"x"}}`, strictjson.Present},
		{`[-1]`, strictjson.Present},
		{`[null,true]`, strictjson.Present},
		{`["\u0000"]`, strictjson.Present},
		{`[[]]`, strictjson.EmptyResult},
		{`[null]`, strictjson.EmptyResult},
		{`[{}]`, strictjson.EmptyResult},
		{`{"a":{"b\"1":[ "" , null ]}, "true" : [] }`, strictjson.EmptyResult},
		{`""`, strictjson.Present},
		{`"{}"`, strictjson.Present},
		{`null`, strictjson.Present},
		{`0`, strictjson.Present},
		{`{}`, strictjson.EmptyResult},
		{`[]`, strictjson.EmptyResult},
		{"{ \r\n\t }", strictjson.EmptyResult},
		{"[ ]", strictjson.EmptyResult},
	} {
		got, d := readWhole(" "+tt.text+" ", strictjson.Options{Redactor: redactor()}, strictjson.Raw)
		require.Nil(t, d.Err(), tt.text)
		assert.Equal(t, tt.text, string(got))
		assert.Equal(t, tt.content, d.Content(), tt.text)
	}
	t.Run("a bound on the members and elements", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{
			"[" + strings.Repeat("1,", strictjson.MaxEntries-1) + "1%s]",
			`{"a":[` + strings.Repeat(`{"":[]},`, strictjson.MaxEntries/2-1) + "0%s]}",
			`[` + strings.Repeat(`[],{},`, (strictjson.MaxEntries-2)/2) + `"","[,]"%s]`,
		} {
			_, d := readWhole(strings.Replace(text, "%s", "", 1), strictjson.Options{}, strictjson.Raw)
			assert.Nil(t, d.Err(), "%.20s", text)
			_, d = readWhole(strings.Replace(text, "%s", ",0", 1), strictjson.Options{}, strictjson.Raw)
			assertError(t, d, "", "has more than 100000 members and elements")
		}
	})
	t.Run("the place of what has too many", func(t *testing.T) {
		t.Parallel()
		many := strings.Repeat("0,", strictjson.MaxEntries)
		for _, result := range []string{"[" + many + "0]", `{"a":{"b":[[` + many + `0]]}}`, `{"a":[` + many + `[]]}`, `[[` + many[2:] + `{"b":1}]]`} {
			d := decoderOf(`{"result":`+result+`}`, strictjson.Options{})
			d.BeginDocument()
			d.Name()
			strictjson.Raw(d)
			assertError(t, d, "/result", "has more than 100000 members and elements")
		}
	})
	t.Run("without the key", func(t *testing.T) {
		t.Parallel()
		got, d := readWhole(`{"`+canary+`":["`+canary+`"]}`, strictjson.Options{Redactor: redactor()}, strictjson.Raw)
		require.Nil(t, d.Err())
		assert.JSONEq(t, `{"[REDACTED]":["[REDACTED]"]}`, string(got))
	})
	t.Run("a copy", func(t *testing.T) {
		t.Parallel()
		text := []byte(`["abc","xyz"]`)
		d := &strictjson.Decoder{}
		d.Reset(text, strictjson.Options{})
		d.Begin('[')
		first := strictjson.Raw(d)
		copy(text, strings.Repeat("9", len(text)))
		assert.Equal(t, `"abc"`, string(first))
	})
}
