package doc_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/doc"
)

// A difference in the elements of an array is noted once, at its first place; another difference at the
// same place is another note.
func TestDoc_Notes(t *testing.T) {
	t.Parallel()
	inner := `{"id":"p-2","price":"1","y":1}`
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "[" + wholeJSON() + "]", nil},
		{"differences in a list", "[" + strings.Join([]string{
			wholeJSON(), wholeWith("part", inner), wholeWith("part", inner),
			strings.Replace(wholeWith("state", `"HELD"`), `"id":`, `"x":1,"id":`, 1),
			strings.Replace(wholeWith("state", `"GONE"`), `"id":`, `"x":2,"z":1,"id":`, 1),
		}, ",") + "]", []string{
			"unknown field /1/part/y", "mismatch /1/partId", "unknown field /3/x",
			`unknown value /3/state: "HELD" is not documented`, "unknown field /4/z",
		}},
		{"a reference in another case", "[" + strings.ReplaceAll(wholeWith("partId",
			`"8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B"`), `"id":"p-1"`, `"id":"8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"`) + "]", nil},
		{"an amount as a number", "[" + wholeJSON() + "," + wholeWith("price", "2.5") + "," + wholeWith("price", "2.5") +
			"]", []string{"unexpected /1/price"}}, // I-54
		{
			"times that cannot be read", "[" + wholeWith("at", `"soon"`) + "," + wholeWith("at", `null`) + "]",
			[]string{`lacking /0/at: "soon" is not a time`},
		}, // I-53
		{"a time that is null", "[" + wholeWith("at", `null`) + "]", []string{`lacking /0/at: is not a time`}},
		{
			"skipped records", "[1," + wholeJSON() + `,2,` + wholeWith("price", `"-"`) + "," + wholeWith("price", `null`) + "]",
			[]string{
				"skipped /0: 1 is a number, not an object", "again skipped /2: 2 is a number, not an object",
				`skipped /3/price: "-" is not a decimal number`, "again skipped /4/price: is null, not an amount",
			},
		},
		{"a difference in a record that is skipped", "[" + wholeJSON() + "," +
			strings.Replace(wholeWith("open", `2`), `"id":`, `"x":1,"id":`, 1) + "]", []string{
			"unknown field /1/x", "skipped /1/open: 2 is a number, not a boolean",
		}},
	} {
		n := parsed(t, tt.text)
		_, wrong := wholeRecord.Many(n)
		require.Nil(t, wrong)
		assert.Equal(t, tt.want, notes(n.Doc()), tt.name)
	}
}

// 64 skipped records are noted, and 64 other differences.
func TestDoc_Notes_bound(t *testing.T) {
	t.Parallel()
	for _, count := range []int{63, 64, 65} {
		var members []string
		for i := range count {
			members = append(members, fmt.Sprintf(`"x%d":1`, i))
		}
		bad := slices.Repeat([]string{`{"v":"-"}`}, count)
		n := parsed(t, `[{"v":1,`+strings.Join(members, ",")+"},"+strings.Join(bad, ",")+"]")
		got, wrong := doc.RecordOf[box[int]]().Many(n)
		require.Nil(t, wrong)
		assert.Len(t, got, 1)
		all := notes(n.Doc())
		most := min(count, 64)
		require.Len(t, all, 2*most)
		assert.Equal(t, fmt.Sprintf("unknown field /0/x%d", most-1), all[most-1])
		assert.Equal(t, fmt.Sprintf(`again skipped /%d/v: "-" is not an integer in range`, most), all[2*most-1])
		n.Doc().NoteError(&doc.Error{Err: io.EOF})
		assert.Len(t, n.Doc().Notes(), most+min(count+1, 64))
	}
}

func TestDoc_NoteError(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[*doc.Error]string{
		nil: "",
		{Pointer: "/id", Value: `"w"`, Err: doc.ErrMismatch}: `mismatch /id: "w" is another record than the requested one`,
		{Err: fmt.Errorf("%w: %w", io.EOF, doc.ErrMismatch)}: "mismatch : EOF: is another record than the requested one",
		{Pointer: "/id", Err: io.EOF}:                        "unreadable /id: EOF",
		{Err: io.EOF, Syntax: true}:                          "",
	} {
		d := parsed(t, "1").Doc()
		d.NoteError(wrong)
		d.NoteError(wrong)
		assert.Equal(t, want, strings.Join(notes(d), "; "))
	}
}

// A record is skipped because of a value in it.
func TestNode_Skip(t *testing.T) {
	t.Parallel()
	n := parsed(t, `[{"coin":"A","v":"-"},{"coin":"B","v":"-"}]`)
	for record := range n.Parts() {
		record.Skip(record.Member("v"), errors.New("is odd"))
		record.Note(doc.UnexpectedValue)
	}
	assert.Equal(t, []string{`skipped /0/v: "-" is odd`, "unexpected /0", `again skipped /1/v: "-" is odd`},
		notes(n.Doc()))
	assert.Equal(t, "B", n.Doc().Notes()[2].Record.Member("coin").Text())
	assert.Equal(t, `"-" is odd`, n.Doc().FirstSkipped().Reason())
}

// A place in an array is the same place in each of its elements.
func TestWithoutIndices(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"": "", "/a": "/a", "/0": "/*", "/a/17/b/0": "/a/*/b/*", "/a1/1a": "/a1/1a", "/-1": "/-1",
		"/18446744073709551615": "/*",
	} {
		assert.Equal(t, want, doc.WithoutIndices(pointer))
	}
}
