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

const mark = "\ufeff" // a byte-order mark

// canary is a key. No text that the package returns may have it in it.
const canary = "CANARY-5f1d8e0b7a64c932"

func redactor() redact.Redactor { return redact.New(redact.NewSecret(canary)) }

func decoderOf(text string, o strictjson.Options) *strictjson.Decoder {
	d := &strictjson.Decoder{}
	d.Reset([]byte(text), o)
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
type box[T any] struct {
	Value T `json:"v"`
}

// boxes is a list of boxes with these values, as JSON.
func boxes(values ...string) string {
	return `[{"v":` + strings.Join(values, `},{"v":`) + `}]`
}

func readBox[T any](text string) (T, *strictjson.Decoder) {
	got, d := readWhole(`{"v":`+text+`}`, strictjson.Options{}, strictjson.One(strictjson.RecordOf[box[T]]()))
	return got.Value, d
}

func readBoxes[T any](texts ...string) ([]box[T], *strictjson.Decoder) {
	return readWhole(boxes(texts...), strictjson.Options{}, strictjson.Many(strictjson.RecordOf[box[T]]()))
}

// assertReads asserts that a value is read, alone and in each record of a list, where it
// recurs.
func assertReads[T any](t *testing.T, text string, want T) {
	t.Helper()
	got, d := readBox[T](text)
	require.Nil(t, d.Err())
	assert.Equal(t, want, got)
	list, d := readBoxes[T](text, text, text)
	require.Nil(t, d.Err())
	assert.Equal(t, []box[T]{{want}, {want}, {want}}, list, "in a list")
}

// assertRejects asserts that a value is not read, alone or in a list after good ones.
func assertRejects[T any](t *testing.T, good, text, reason string) {
	t.Helper()
	got, d := readBox[T](text)
	assert.Zero(t, got)
	assertError(t, d, "/v", reason)
	_, d = readBoxes[T](good, good, text)
	assertError(t, d, "/2/v", reason)
}

// assertError asserts that a text is JSON and has another error, or a record with it that was
// left out.
func assertError(t *testing.T, d *strictjson.Decoder, pointer, reason string) {
	t.Helper()
	wrong := d.Err()
	if wrong == nil {
		require.Len(t, d.LeftOut(), 1)
		wrong = d.LeftOut()[0].Error
	}
	assert.Equal(t, pointer, wrong.Pointer)
	assert.EqualError(t, wrong.Err, reason)
	assert.False(t, wrong.Syntax)
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
	ID    string          `json:"id" check:"nonempty"`
	Price decimal.Decimal `json:"price"`
	At    time.Time       `json:"at,omitzero"`
}

// A whole is a record with a member of every kind that the service has.
type whole struct {
	ID     string          `json:"id" check:"id"`
	Name   string          `json:"name"`
	Price  decimal.Decimal `json:"price"`
	Count  int             `json:"count"`
	Open   bool            `json:"open"`
	State  state           `json:"state"`
	At     time.Time       `json:"at,omitzero"`
	PartID string          `json:"partId" check:"equals part.id"`
	Part   part            `json:"part"`
}

// A state is an enumeration.
type state string

func (s state) Known() bool { return s == "NEW" || s == "DONE" }

var (
	partRecord  = strictjson.RecordOf[part]()
	wholeRecord = strictjson.RecordOf[whole]()
)

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
