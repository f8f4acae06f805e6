package strictjson_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// A record that cannot be read is left out and told of, and the others are read as they are
// without it.
func TestMany_leavesOut(t *testing.T) {
	t.Parallel()
	read := strictjson.Many(wholeRecord, "/name", "/part/id")
	for _, tt := range []struct{ name, bad, pointer, reason, names string }{
		{"an amount that is null", object(wholeMembers(), "price", `null`), "/1/price", "is null, not an amount", "first|p-1"},
		{"an amount with a comma", object(wholeMembers(), "price", `"12,5"`), "/1/price", `"12,5" is not a decimal number`, "first|p-1"},
		{"a flag as text", object(wholeMembers(), "open", `"yes"`), "/1/open", `"yes" is text, not a boolean`, "first|p-1"},
		{"a name that is a number", object(wholeMembers(), "name", `7`), "/1/name", "7 is a number, not text", "|p-1"},
		{"an amount in the record within", object(wholeMembers(), "part", `{"id":"p-1","price":"-"}`), "/1/part/price", `"-" is not a decimal number`, "first|p-1"},
		{"a member of the record within that is missing", object(wholeMembers(), "part", `{"price":"1"}`), "/1/part/id", "is missing", "first|"},
		{"the record within is null", object(wholeMembers(), "part", `null`), "/1/part", "is null, not an object", "first|"},
		{"a deep value in place of a flag", object(wholeMembers(), "open", `{"a":[{"b":[1,{}]}]}`), "/1/open", "is an object, not a boolean", "first|p-1"},
		{"an empty record", `{}`, "/1/id", "is missing", "|"},
		{"null", `null`, "/1", "is null, not an object", "|"},
		{"a number", `17`, "/1", "17 is a number, not an object", "|"},
		{"text", `"none"`, "/1", `"none" is text, not an object`, "|"},
		{"an array", `[[1,{"a":2}],3]`, "/1", "is an array, not an object", "|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			notes := &strictjson.Notes{}
			text := "[" + strings.Join([]string{wholeJSON(), tt.bad, wholeJSON(), wholeJSON()}, " , ") + "]"
			got, d := readWhole(text, strictjson.Options{Notes: notes}, read)
			require.Nil(t, d.Err())
			want := documentedWhole()
			assert.Equal(t, []whole{want, want, want}, got)
			require.Len(t, d.LeftOut(), 1)
			left := d.LeftOut()[0]
			assert.Equal(t, tt.pointer, left.Pointer)
			assert.Equal(t, tt.reason, left.Reason())
			assert.Equal(t, strings.ReplaceAll(tt.names, "first", want.Name), strings.Join(left.Names, "|"))
			assert.Contains(t, notes.All(), strictjson.Note{Kind: strictjson.UnknownShape, Pointer: tt.pointer, Reason: tt.reason})
		})
	}
	t.Run("all of them", func(t *testing.T) {
		t.Parallel()
		got, d := readWhole(`[{"id":"a"},null,{}]`, strictjson.Options{}, read)
		assert.Empty(t, got)
		require.NotNil(t, d.Err())
		assert.Equal(t, "/0/name", d.Err().Pointer)
		assert.Equal(t, strictjson.Present, d.Content())
	})
	t.Run("a text that ends in a record is an error, whatever was left out", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{`[null,{"v":`, `[null,{"v":1`, `[{"v":"x","w":`, `[{"v":1},{"v":"x",nope}]`, `[{"v":1},{"v":"x","w":1,"w":2}]`} {
			_, d := readWhole(text, strictjson.Options{}, strictjson.Many(strictjson.RecordOf[box[int]]()))
			require.NotNil(t, d.Err(), text)
			assert.True(t, d.Err().Syntax, text)
		}
	})
	t.Run("of a long name 256 bytes are kept", func(t *testing.T) {
		t.Parallel()
		long := strings.Replace(object(wholeMembers(), "price", `null`), "A whole", strings.Repeat("é", 50_000), 1)
		_, d := readWhole("["+wholeJSON()+","+long+"]", strictjson.Options{}, read)
		require.Len(t, d.LeftOut(), 1)
		assert.Equal(t, []string{strings.Repeat("é", 128), "p-1"}, d.LeftOut()[0].Names)
	})
	t.Run("the first 64 are told", func(t *testing.T) {
		t.Parallel()
		texts := slices.Repeat([]string{`"x"`, `1`}, 70)
		got, d := readWhole(boxes(texts...), strictjson.Options{}, strictjson.Many(strictjson.RecordOf[box[int]](), "/v"))
		require.Nil(t, d.Err())
		assert.Len(t, got, 70)
		require.Len(t, d.LeftOut(), strictjson.MaxLeftOut)
		for i, left := range d.LeftOut() {
			assert.Equal(t, fmt.Sprintf("/%d/v", 2*i), left.Pointer)
			assert.Equal(t, []string{"x"}, left.Names)
		}
	})
	t.Run("what recurs is read once, and right, around it", func(t *testing.T) {
		t.Parallel()
		got, d := readBoxes[string](`"a"`, `1`, `"a"`, `2`, `"b"`, `"a"`)
		require.Nil(t, d.Err())
		assert.Equal(t, []box[string]{{"a"}, {"a"}, {"b"}, {"a"}}, got)
		assert.Len(t, d.LeftOut(), 2)
	})
}

// The value of an error is what is at its place, bounded and without keys.
func TestError_Value(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 40)
	for _, tt := range []struct{ name, value, want string }{
		{"text", `"12,5"`, `"12,5"`},
		{"text with escapes", `"\u0031\n\""`, `"1\n\""`},
		{"nothing", `""`, `""`},
		{"a boolean", `true`, `true`},
		{"null, of which the reason says enough", `null`, ``},
		{"an object", `{"a":1}`, ``},
		{"an array", `["x"]`, ``},
		{"a number without an end", strings.Repeat("9", 200), strings.Repeat("9", 64)},
		{"long text", `"` + long + `"`, `"` + long[:58] + `…"`},
		{"text of 64 bytes", `"` + strings.Repeat("a", 62) + `"`, `"` + strings.Repeat("a", 62) + `"`},
		{"text of 65 bytes", `"` + strings.Repeat("a", 63) + `"`, `"` + strings.Repeat("a", 59) + `…"`},
		{"a key", `"` + canary + `"`, `"[REDACTED]"`},
		{"a key in escapes", `"\u0043` + canary[1:] + `"`, `"[REDACTED]"`},
		{"a key across the end", `"` + strings.Repeat("x", 55) + canary + `"`, `"` + strings.Repeat("x", 55) + `[RED…"`},
		{"a key after the end", `"` + strings.Repeat("x", 70) + canary + `"`, `"` + strings.Repeat("x", 59) + `…"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := strictjson.Options{Redactor: redactor()}
			_, d := readWhole(`[{"v":1},{"v":`+tt.value+`}]`, o, strictjson.Many(strictjson.RecordOf[box[decimal.Decimal]]()))
			require.Len(t, d.LeftOut(), 1)
			assert.Equal(t, tt.want, d.LeftOut()[0].Value, "of a record")
			assert.LessOrEqual(t, len(d.LeftOut()[0].Value), 64)
			d = decoderOf(tt.value, o)
			n := strictjson.NodeOf(d, strictjson.Raw(d))
			assert.Equal(t, tt.want, n.Errorf("is odd").Value, "of a node")
		})
	}
	t.Run("what is missing", func(t *testing.T) {
		t.Parallel()
		_, d := readWhole(`{}`, strictjson.Options{}, strictjson.One(strictjson.RecordOf[box[int]]()))
		require.NotNil(t, d.Err())
		assert.Empty(t, d.Err().Value)
	})
}

// A node that is left out is told with its names, and the first 64 of them.
func TestNode_LeaveOut(t *testing.T) {
	t.Parallel()
	notes := &strictjson.Notes{}
	d := decoderOf(`[`+strings.Repeat(`{"coin":"A","v":"-"},`, 99)+`{}]`, strictjson.Options{Notes: notes})
	for n := range strictjson.NodeOf(d, strictjson.Raw(d)).Elements() {
		if v := n.Member("v"); !v.IsZero() {
			v.LeaveOut(errors.New("is odd"), n.At("/coin").Text())
		}
	}
	require.Len(t, d.LeftOut(), 64)
	assert.Equal(t, "/63/v", d.LeftOut()[63].Pointer)
	assert.Equal(t, `"-" is odd`, d.LeftOut()[63].Reason())
	assert.Equal(t, []string{"A"}, d.LeftOut()[63].Names)
	assert.Equal(t, []strictjson.Note{{Kind: strictjson.UnknownShape, Pointer: "/0/v", Reason: `"-" is odd`}}, notes.All())
}

func TestNode_At(t *testing.T) {
	t.Parallel()
	n := nodeOf(t, `{"a":[{"b/c":"x"},["y"]],"":"z","0":"w"}`)
	for pointer, want := range map[string]string{
		"/a/0/b~1c": "x", "/a/1/0": "y", "/": "z", "/0": "w",
		"": "", "/a": "", "/a/2": "", "/a/-1": "", "/a/00": "", "/a/1/0/0": "", "/b": "", "/a/-": "",
	} {
		assert.Equal(t, want, n.At(jsontext.Pointer(pointer)).Text(), pointer)
	}
	assert.False(t, n.At("").IsZero())
	assert.True(t, n.At("/a/2").IsZero())
}
