package strictjson_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// canary is a key. No text that the package returns may have it in it.
const canary = "CANARY-5f1d8e0b7a64c932"

func redactor() redact.Redactor { return redact.New(redact.NewSecret(canary)) }

func decoderOf(text string, o strictjson.Options) *strictjson.Decoder {
	d := &strictjson.Decoder{}
	d.Reset(strings.NewReader(text), o)
	return d
}

// readWhole reads a text that is one value.
func readWhole[T any](text string, o strictjson.Options, read func(*strictjson.Decoder) T) (T, *strictjson.Decoder) {
	d := decoderOf(text, o)
	value := read(d)
	d.EndDocument()
	return value, d
}

// A box is a record with one member.
type box[T any] struct{ Value T }

func boxFields[T any](read func(*strictjson.Decoder) T) strictjson.Fields[box[T]] {
	return strictjson.Fields[box[T]]{strictjson.Required("v", read, func(b *box[T]) *T { return &b.Value })}
}

// boxes is a list of boxes with these values, as JSON.
func boxes(values ...string) string {
	return `[{"v":` + strings.Join(values, `},{"v":`) + `}]`
}

// assertReads asserts that a method reads a value, alone and in each record of a
// list, where all after the first are interned.
func assertReads[T any](t *testing.T, read func(*strictjson.Decoder) T, text string, want T) {
	t.Helper()
	got, d := readWhole(text, strictjson.Options{}, read)
	require.Nil(t, d.Err())
	assert.Equal(t, want, got)
	list, d := readWhole(boxes(text, text, text), strictjson.Options{}, strictjson.Many(boxFields(read)))
	require.Nil(t, d.Err())
	assert.Equal(t, []box[T]{{want}, {want}, {want}}, list, "in a list")
}

// assertRejects asserts that a method does not read a value, alone or in a list
// after good ones.
func assertRejects[T any](t *testing.T, read func(*strictjson.Decoder) T, good, text, reason string) {
	t.Helper()
	got, d := readWhole(text, strictjson.Options{}, read)
	assert.Zero(t, got)
	assertError(t, d, "", reason)
	_, d = readWhole(boxes(good, good, text), strictjson.Options{}, strictjson.Many(boxFields(read)))
	assertError(t, d, "/2/v", reason)
}

// assertError asserts that a text is JSON and has another error.
func assertError(t *testing.T, d *strictjson.Decoder, pointer, reason string) {
	t.Helper()
	require.NotNil(t, d.Err())
	assert.Equal(t, pointer, d.Err().Pointer)
	assert.EqualError(t, d.Err().Err, reason)
	assert.False(t, d.Err().Syntax)
}

// assertSyntax asserts that a text is not JSON.
func assertSyntax(t *testing.T, d *strictjson.Decoder, pointer, reason string) {
	t.Helper()
	require.NotNil(t, d.Err())
	assert.Equal(t, pointer, d.Err().Pointer)
	assert.ErrorContains(t, d.Err().Err, reason)
	assert.True(t, d.Err().Syntax)
}

// A part is the record within a [whole].
type part struct {
	ID    string
	Price decimal.Decimal
	At    time.Time
}

// A whole is a record with a member of every kind.
type whole struct {
	ID     string
	Name   string
	Price  decimal.Decimal
	Count  int
	Open   bool
	State  string
	At     time.Time
	PartID string
	Part   part
}

var partFields = strictjson.Fields[part]{
	strictjson.Required("id", (*strictjson.Decoder).NonEmpty, func(p *part) *string { return &p.ID }),
	strictjson.Required("price", (*strictjson.Decoder).Amount, func(p *part) *decimal.Decimal { return &p.Price }),
	strictjson.Timestamp("at", func(p *part) *time.Time { return &p.At }),
}

var wholeFields = strictjson.Fields[whole]{
	strictjson.Required("id", (*strictjson.Decoder).ID, func(w *whole) *string { return &w.ID }),
	strictjson.Required("name", (*strictjson.Decoder).Text, func(w *whole) *string { return &w.Name }),
	strictjson.Required("price", (*strictjson.Decoder).Amount, func(w *whole) *decimal.Decimal { return &w.Price }),
	strictjson.Required("count", (*strictjson.Decoder).Int, func(w *whole) *int { return &w.Count }),
	strictjson.Required("open", (*strictjson.Decoder).Bool, func(w *whole) *bool { return &w.Open }),
	strictjson.Required("state", strictjson.Enum("NEW", "DONE"), func(w *whole) *string { return &w.State }),
	strictjson.Timestamp("at", func(w *whole) *time.Time { return &w.At }),
	strictjson.Matching(strictjson.Required("partId", (*strictjson.Decoder).Repeated, func(w *whole) *string { return &w.PartID }), partIDs),
	strictjson.Matching(strictjson.Nested("part", partFields, func(w *whole) *part { return &w.Part }), partIDs),
}

func partIDs(w *whole) (string, string) { return w.PartID, w.Part.ID }

// A member is a name and a value as JSON.
type member struct{ name, value string }

func wholeMembers() []member {
	return []member{
		{"id", `"w-1"`},
		{"name", `"A whole"`},
		{"price", `"1.50"`},
		{"count", `20`},
		{"open", `true`},
		{"state", `"DONE"`},
		{"at", `"2024-01-02T03:04:05Z"`},
		{"partId", `"p-1"`},
		{"part", `{"id":"p-1","price":"2.5","at":"2024-01-02T03:04:05Z"}`},
	}
}

// object writes members as an object, one of them with another value; without it
// where that is empty.
func object(members []member, name, value string) string {
	var all []string
	for _, m := range members {
		if m.name == name {
			m.value = value
		}
		if m.value != "" {
			all = append(all, fmt.Sprintf("%q:%s", m.name, m.value))
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

func wholeJSON() string { return object(wholeMembers(), "", "") }

// documentedWhole is what wholeJSON reads as.
func documentedWhole() whole {
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	return whole{
		ID: "w-1", Name: "A whole", Price: decimal.RequireFromString("1.50"), Count: 20, Open: true, State: "DONE", At: at,
		PartID: "p-1", Part: part{ID: "p-1", Price: decimal.RequireFromString("2.5"), At: at},
	}
}
