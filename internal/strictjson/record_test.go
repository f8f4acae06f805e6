package strictjson_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/strictjson"
)

func readWholeRecord(text string, o strictjson.Options) (*whole, *strictjson.Decoder) {
	return readWhole(text, o, strictjson.One(wholeRecord))
}

// Every member goes where its tag states, whatever the order.
func TestRecord(t *testing.T) {
	t.Parallel()
	members := wholeMembers()
	for range members {
		got, d := readWholeRecord(object(members, "", ""), strictjson.Options{})
		require.Nil(t, d.Err())
		assert.Equal(t, documentedWhole(), *got)
		members = append(members[1:], members[0])
	}
	slices.Reverse(members)
	got, d := readWholeRecord(object(members, "", ""), strictjson.Options{})
	require.Nil(t, d.Err())
	assert.Equal(t, documentedWhole(), *got)
}

func TestRecord_missing(t *testing.T) {
	t.Parallel()
	for _, m := range wholeMembers() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			text := object(wholeMembers(), m.name, "")
			got, d := readWholeRecord(text, strictjson.Options{})
			if m.name == "at" {
				require.Nil(t, d.Err())
				assert.Zero(t, got.At, "a timestamp may be missing")
				return
			}
			assertError(t, d, "/"+m.name, "is missing")
			_, d = readWhole("["+wholeJSON()+","+text+"]", strictjson.Options{}, strictjson.Many(wholeRecord))
			assertError(t, d, "/1/"+m.name, "is missing")
		})
	}
	t.Run("the first that is missing is named", func(t *testing.T) {
		t.Parallel()
		_, d := readWholeRecord(`{"id":"x"}`, strictjson.Options{})
		assertError(t, d, "/name", "is missing")
		_, d = readWholeRecord(`{}`, strictjson.Options{})
		assertError(t, d, "/id", "is missing")
	})
}

func TestRecord_wrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, member, value, pointer, reason string }{
		{"an amount that is null", "price", `null`, "/price", "is null, not an amount"},
		{"an integer that is text", "count", `"12"`, "/count", "is text, not a number"},
		{"a flag that is text", "open", `"true"`, "/open", "is text, not a boolean"},
		{"a text that is null", "name", `null`, "/name", "is null, not text"},
		{"a record that is null", "part", `null`, "/part", "is null, not an object"},
		{"a record that is text", "part", `"x"`, "/part", "is text, not an object"},
		{"a record that is an array of one", "part", `[{"id":"p-1","price":1}]`, "/part", "is an array, not an object"},
		{"a value within a record", "part", `{"id":"","price":1}`, "/part/id", "is empty"},
		{"a member that is missing within a record", "part", `{"id":"p-1"}`, "/part/price", "is missing"},
		{"an identifier that is another", "id", `"w-2"`, "/id", strictjson.ErrMismatch.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := object(wholeMembers(), tt.member, tt.value)
			_, d := readWholeRecord(text, strictjson.Options{ExpectID: "w-1"})
			assertError(t, d, tt.pointer, tt.reason)
			_, d = readWhole("["+wholeJSON()+","+wholeJSON()+","+text+"]", strictjson.Options{ExpectID: "w-1"}, strictjson.Many(wholeRecord))
			assertError(t, d, "/2"+tt.pointer, tt.reason)
		})
	}
}

func TestRecord_names(t *testing.T) {
	t.Parallel()
	renamed := func(old, new string) string { return strings.Replace(wholeJSON(), old, new, 1) }
	for _, tt := range []struct{ name, text, pointer, reason string }{
		{"a text twice", renamed(`"name":`, `"name":"x","name":`), "/name", "duplicate"},
		{"an amount twice", renamed(`"price":`, `"price":"1","price":`), "/price", "duplicate"},
		{"an amount twice, once in escapes", renamed(`"open":`, `"\u0070rice":"1","open":`), "/price", "duplicate"},
		{"an unknown name twice", renamed(`"open":`, `"x":"1","x":2,"open":`), "/x", "duplicate"},
		{"a name twice in a record within", renamed(`"price":"2.5"`, `"price":"2.5","price":"2.5"`), "/part/price", "duplicate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, d := readWholeRecord(tt.text, strictjson.Options{})
			assertSyntax(t, d, tt.pointer, tt.reason)
			_, d = readWhole("["+wholeJSON()+","+wholeJSON()+","+tt.text+"]", strictjson.Options{}, strictjson.Many(wholeRecord))
			assertSyntax(t, d, "/2"+tt.pointer, tt.reason)
		})
	}
	t.Run("a name in upper case is another name", func(t *testing.T) {
		t.Parallel()
		_, d := readWholeRecord(renamed(`"state":`, `"STATE":`), strictjson.Options{})
		assertError(t, d, "/state", "is missing")
	})
	t.Run("a name in upper case does not overrule", func(t *testing.T) {
		t.Parallel()
		got, d := readWholeRecord(renamed(`"state":`, `"STATE":"NEW","State":"OLD","state":`), strictjson.Options{})
		require.Nil(t, d.Err())
		assert.Equal(t, documentedWhole(), *got)
	})
	t.Run("a name in escapes is the name", func(t *testing.T) {
		t.Parallel()
		got, d := readWholeRecord(renamed(`"state":`, `"\u0073tate":`), strictjson.Options{})
		require.Nil(t, d.Err())
		assert.Equal(t, documentedWhole(), *got)
	})
	t.Run("unknown members are skipped and noted", func(t *testing.T) {
		t.Parallel()
		notes := &strictjson.Notes{}
		text := `{"first":[{"price":7}],` + renamed(`"price":"2.5"`, `"inner":{},"price":"2.5"`)[1:]
		text = text[:len(text)-1] + `,"last":null}`
		got, d := readWholeRecord(text, strictjson.Options{Notes: notes})
		require.Nil(t, d.Err())
		assert.Equal(t, documentedWhole(), *got)
		assert.Equal(t, []strictjson.Note{{Pointer: "/first"}, {Pointer: "/part/inner"}, {Pointer: "/last"}}, notes.All())
	})
}

// A member that does not equal the other is a note, at its place.
func TestRecord_equals(t *testing.T) {
	t.Parallel()
	inner := func(id string) string { return `{"id":"` + id + `","price":"2.5"}` }
	for _, tt := range []struct {
		name, text string
		want       []strictjson.Note
	}{
		{"equal", `"partId":"p-1","part":` + inner("p-1"), nil},
		{"equal but for the case of a UUID", `"partId":"8EE74576-0BCF-4BFA-9C0C-DE1A8CC8FA6B","part":` + inner("8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"), nil},
		{"they differ", `"partId":"p-2","part":` + inner("p-1"), []strictjson.Note{{Kind: strictjson.Mismatch, Pointer: "/partId"}}},
		{"they differ, in another order", `"part":` + inner("p-1") + `,"partId":"p-2"`, []strictjson.Note{{Kind: strictjson.Mismatch, Pointer: "/partId"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			notes := &strictjson.Notes{}
			text := object(slices.DeleteFunc(wholeMembers(), func(m member) bool { return strings.HasPrefix(m.name, "part") }), "", "")
			got, d := readWholeRecord(strings.TrimSuffix(text, "}")+","+tt.text+"}", strictjson.Options{Notes: notes})
			require.Nil(t, d.Err())
			assert.NotEmpty(t, got.Part.ID)
			assert.Equal(t, tt.want, notes.All())
		})
	}
	t.Run("without notes", func(t *testing.T) {
		t.Parallel()
		got, d := readWholeRecord(object(wholeMembers(), "partId", `"p-2"`), strictjson.Options{})
		require.Nil(t, d.Err())
		assert.Equal(t, "p-2", got.PartID)
	})
	t.Run("an empty one is an error of its own", func(t *testing.T) {
		t.Parallel()
		notes := &strictjson.Notes{}
		_, d := readWholeRecord(object(wholeMembers(), "part", inner("")), strictjson.Options{Notes: notes})
		assertError(t, d, "/part/id", "is empty")
		assert.Empty(t, notes.All())
	})
}

// A key that a service repeats in the records of a list, or in those within them, is
// in none of what is read, and in no error.
func TestMany_key(t *testing.T) {
	t.Parallel()
	part := func(value string) string { return `{"id":"a ` + canary + `","price":` + value + `}` }
	good, bad := object(wholeMembers(), "part", part("1")), object(wholeMembers(), "part", strings.Replace(part("1"), `"id"`, `"`+canary+`":1,"id"`, 1))
	notes := &strictjson.Notes{}
	list, d := readWhole("["+strings.Join([]string{good, good, good, bad}, ",")+"]", strictjson.Options{Redactor: redactor(), Notes: notes}, strictjson.Many(wholeRecord))
	require.Nil(t, d.Err())
	for _, w := range list {
		assert.Equal(t, "a [REDACTED]", w.Part.ID)
	}
	assert.Contains(t, notes.All(), strictjson.Note{Kind: strictjson.UnknownField, Pointer: "/3/part/[REDACTED]"})
	bad = object(wholeMembers(), "part", `{"`+canary+`":nope}`)
	_, d = readWhole("["+strings.Join([]string{good, good, bad}, ",")+"]", strictjson.Options{Redactor: redactor()}, strictjson.Many(wholeRecord))
	assertSyntax(t, d, "/2/part/[REDACTED]", "invalid character")
}

// A record of a list is what it is alone, wherever it stands in the list.
func TestMany_alike(t *testing.T) {
	t.Parallel()
	const n = 1000
	var all []string
	for i := range n {
		id := fmt.Sprintf("p-%d", i%300)
		members := []member{
			{"id", fmt.Sprintf(`"w-%d"`, i)},
			{"name", `"` + strings.Repeat("n", i%7) + `"`},
			{"price", fmt.Sprintf(`"%d.5"`, i%270)},
			{"count", fmt.Sprint(i)},
			{"open", fmt.Sprint(i%2 == 0)},
			{"state", `"NEW"`},
			{"at", fmt.Sprintf(`"2024-01-02T03:%02d:%02dZ"`, i/20, i%60)},
			{"partId", fmt.Sprintf("%q", id)},
			{"part", fmt.Sprintf(`{"id":%q,"price":%d,"at":"2023-01-02"}`, id, i%11)},
		}
		all = append(all, object(members, "", ""))
	}
	text := "[" + strings.Join(all, ",") + "]"
	list, d := readWhole(text, strictjson.Options{}, strictjson.Many(wholeRecord))
	require.Nil(t, d.Err())
	require.Len(t, list, n)
	assert.Less(t, cap(list), n+n/8, "a list is mostly stored once")
	for i, record := range all {
		alone, d := readWholeRecord(record, strictjson.Options{})
		require.Nil(t, d.Err())
		require.Equal(t, *alone, list[i])
	}
}

// Records of a list share what is equal, and a change of one is none of another: no
// operation changes a decimal, and the rest are values.
func TestMany_shared(t *testing.T) {
	t.Parallel()
	list, d := readWhole("["+wholeJSON()+","+wholeJSON()+","+wholeJSON()+"]", strictjson.Options{}, strictjson.Many(wholeRecord))
	require.Nil(t, d.Err())
	changed := &list[1]
	changed.Part.ID, changed.Part.At = "changed", time.Time{}
	for _, amount := range []*decimal.Decimal{&changed.Price, &changed.Part.Price} {
		_ = amount.Add(decimal.New(1, 0)).Mul(*amount).Round(1).Neg()
		amount.Coefficient().SetInt64(7)
		require.NoError(t, amount.Scan("99.99"))
	}
	assert.Equal(t, documentedWhole(), list[2])
	require.NoError(t, list[2].Price.UnmarshalJSON([]byte(`"3"`)))
	require.NoError(t, list[2].Price.UnmarshalBinary([]byte{0, 0, 0, 0, 2, 9}))
	assert.Equal(t, documentedWhole(), list[0])
}

// A type that is not a record is noticed when its Record is made.
func TestRecordOf_panics(t *testing.T) {
	t.Parallel()
	type within struct {
		B any `json:"b"`
	}
	for name, compile := range map[string]func(){
		"no tag": compiling[struct{ A string }],
		"no name": compiling[struct {
			A string `json:",omitzero"`
		}],
		"a hidden field": compiling[struct {
			A string `json:"-"`
		}],
		"another option": compiling[struct {
			A string `json:"a,omitempty"`
		}],
		"a type": compiling[struct {
			A float64 `json:"a"`
		}],
		"a type of a slice": compiling[struct {
			A []byte `json:"a"`
		}],
		"a type within": compiling[struct {
			A within `json:"a"`
		}],
		"a check": compiling[struct {
			A string `json:"a" check:"empty"`
		}],
		"a check of a flag": compiling[struct {
			A bool `json:"a" check:"id"`
		}],
		"a path": compiling[struct {
			A string `json:"a" check:"equals b"`
		}],
		"a path into text": compiling[struct {
			A string `json:"a" check:"equals a.b"`
		}],
	} {
		assert.Panics(t, compile, name)
	}
}

func compiling[T any]() { strictjson.RecordOf[T]() }
