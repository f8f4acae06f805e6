package strictjson_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/strictjson"
)

func TestNotes_nil(t *testing.T) {
	t.Parallel()
	var none *strictjson.Notes
	assert.Nil(t, none.All())
	d := decoderOf(`{"x":1,"v":"y"}`, strictjson.Options{})
	strictjson.One(strictjson.RecordOf[box[state]]())(d)
	assert.Nil(t, d.Err())
	d.NoteError()
	assert.Nil(t, d.Notes)
}

// What recurs in the elements of an array is noted once, where it is met first;
// another difference at the same place is another note.
func TestNotes_once(t *testing.T) {
	t.Parallel()
	notes := &strictjson.Notes{}
	inner := `{"id":"p-2","price":"1","y":1}`
	text := "[" + wholeJSON() + "," +
		strings.Join([]string{object(wholeMembers(), "part", inner), object(wholeMembers(), "part", inner)}, ",") + "," +
		strings.Replace(object(wholeMembers(), "state", `"HELD"`), `"id":`, `"x":1,"id":`, 1) + "," +
		strings.Replace(object(wholeMembers(), "state", `"GONE"`), `"id":`, `"x":2,"z":1,"id":`, 1) + "]"
	_, d := readWhole(text, strictjson.Options{Notes: notes}, strictjson.Many(wholeRecord))
	require.Nil(t, d.Err())
	assert.Equal(t, []strictjson.Note{
		{Kind: strictjson.UnknownField, Pointer: "/1/part/y"},
		{Kind: strictjson.Mismatch, Pointer: "/1/partId"},
		{Kind: strictjson.UnknownField, Pointer: "/3/x"},
		{Kind: strictjson.UnknownValue, Pointer: "/3/state"},
		{Kind: strictjson.UnknownField, Pointer: "/4/z"},
	}, notes.All())
}

func TestNotes_bound(t *testing.T) {
	t.Parallel()
	for _, n := range []int{63, 64, 65, 1000} {
		notes := &strictjson.Notes{}
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"x%d":1`, i))
		}
		_, d := readWhole(`{"v":1,`+strings.Join(members, ",")+`}`, strictjson.Options{Notes: notes}, strictjson.One(strictjson.RecordOf[box[int]]()))
		require.Nil(t, d.Err())
		require.Len(t, notes.All(), min(n, 64))
		assert.Equal(t, "/x0", notes.All()[0].Pointer)
		assert.Equal(t, fmt.Sprintf("/x%d", min(n, 64)-1), notes.All()[min(n, 64)-1].Pointer)
		d.Fail(io.EOF)
		d.NoteError()
		assert.Len(t, notes.All(), min(n+1, 64))
	}
}

func TestDecoder_NoteError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []strictjson.Note
	}{
		{"no error", `{"id":"w-1"}`, nil},
		{"another identifier", `{"id":"w-2"}`, []strictjson.Note{{Kind: strictjson.Mismatch, Pointer: "/id", Reason: `"w-2" is another record than the one asked for`}}},
		{"another shape", `{"id":[1]}`, []strictjson.Note{{Kind: strictjson.UnknownShape, Pointer: "/id", Reason: "is an array, not text"}}},
		{"a missing member", `{}`, []strictjson.Note{{Kind: strictjson.UnknownShape, Pointer: "/id", Reason: "is missing"}}},
		{"an error of syntax", `{"id":nope}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			notes := &strictjson.Notes{}
			type record struct {
				ID string `json:"id" check:"id"`
			}
			_, d := readWhole(tt.text, strictjson.Options{Notes: notes, ExpectID: "w-1"}, strictjson.One(strictjson.RecordOf[record]()))
			d.NoteError()
			assert.Equal(t, tt.want, notes.All())
		})
	}
	t.Run("a mismatch within another error", func(t *testing.T) {
		t.Parallel()
		notes := &strictjson.Notes{}
		d := decoderOf("1", strictjson.Options{Notes: notes})
		d.Fail(fmt.Errorf("%w: %w", io.EOF, strictjson.ErrMismatch))
		d.NoteError()
		assert.Equal(t, []strictjson.Note{{Kind: strictjson.Mismatch, Reason: "EOF: is another record than the one asked for"}}, notes.All())
	})
}

// A value of another form than is documented is read and noted, also where equal ones
// are read once.
func TestNotes_unexpectedValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, value string
		note        bool
		reason      string
	}{
		{"an amount in a string", `{"id":"p","price":"2.5"}`, false, ""},
		{"an amount as a number", `{"id":"p","price":2.5}`, true, ""}, // I-54
		{"a time", `{"id":"p","price":"1","at":"2024-01-02T03:04:05Z"}`, false, ""},
		{"a time that cannot be read", `{"id":"p","price":"1","at":"soon"}`, true, `"soon" is not a time`}, // I-53
		{"a time that is a number", `{"id":"p","price":"1","at":1700000000}`, true, "1700000000 is not a time"},
		{"a time that is null", `{"id":"p","price":"1","at":null}`, true, "is not a time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pointer := "/price"
			if strings.Contains(tt.value, `"at"`) {
				pointer = "/at"
			}
			notes := &strictjson.Notes{}
			_, d := readWhole(tt.value, strictjson.Options{Notes: notes}, strictjson.One(partRecord))
			require.Nil(t, d.Err())
			assert.Equal(t, tt.note, len(notes.All()) == 1)
			if tt.note {
				assert.Equal(t, []strictjson.Note{{strictjson.UnexpectedValue, pointer, tt.reason}}, notes.All())
			}
			notes = &strictjson.Notes{}
			good := `{"id":"p","price":"1"}`
			_, d = readWhole("["+strings.Join([]string{good, good, tt.value, tt.value}, ",")+"]", strictjson.Options{Notes: notes}, strictjson.Many(partRecord))
			require.Nil(t, d.Err())
			if tt.note {
				assert.Equal(t, []strictjson.Note{{strictjson.UnexpectedValue, "/2" + pointer, tt.reason}}, notes.All(), "once in a list")
			}
		})
	}
}

func TestDecoder_Note(t *testing.T) {
	t.Parallel()
	notes := &strictjson.Notes{}
	d := decoderOf(`["a","b"]`, strictjson.Options{Notes: notes})
	for d.Begin('['); d.More(); {
		d.Skip()
		d.Note(strictjson.UnexpectedValue)
	}
	assert.Equal(t, []strictjson.Note{{Kind: strictjson.UnexpectedValue, Pointer: "/0"}}, notes.All())
}

// A place in an array is the same place in each of its elements.
func TestWithoutIndices(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"": "", "/a": "/a", "/0": "/*", "/a/17/b/0": "/a/*/b/*", "/a1/1a": "/a1/1a", "/-1": "/-1", "/18446744073709551615": "/*",
	} {
		assert.Equal(t, want, strictjson.WithoutIndices(pointer))
	}
}
