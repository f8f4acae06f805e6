package doc_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/redact"
)

// canary is a key. No text that the package returns may contain it, except raw ones.
const canary = "CANARY-5f1d8e0b7a64c932"

func keys() redact.Redactor { return redact.New(redact.NewSecret(canary)) }

// parsed returns the value of a text that is JSON.
func parsed(t testing.TB, text string) doc.Node {
	t.Helper()
	d := &doc.Doc{}
	require.Nil(t, d.Parse([]byte(text), keys(), doc.MaxListing), "%.40s", text)
	return d.Root()
}

// A state is an enumeration.
type state string

func (s state) Known() bool {
	return strings.EqualFold(string(s), "NEW") || strings.EqualFold(string(s), "DONE")
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

var wholeRecord = doc.RecordOf[whole]()

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

// object writes members as an object, one of them with another value, or without it if that is empty.
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

// wholeWith is wholeJSON with another value of one member.
func wholeWith(name, value string) string { return object(wholeMembers(), name, value) }

// documentedWhole is what wholeJSON is read as.
func documentedWhole() whole {
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	return whole{
		ID: "w-1", Name: "A whole", Price: decimal.RequireFromString("1.50"), Count: 20, Open: true, State: "DONE", At: at,
		PartID: "p-1", Part: part{ID: "p-1", Price: decimal.RequireFromString("2.5"), At: at},
	}
}

// A box is a record with one member.
type box[T any] struct {
	Value T `json:"v"`
}

// list writes values as a list of boxes.
func list(values ...string) string { return `[{"v":` + strings.Join(values, `},{"v":`) + `}]` }

// assertReads asserts that a value is read, alone and in a list, where it recurs.
func assertReads[T any](t *testing.T, text string, want T) {
	t.Helper()
	r := doc.RecordOf[box[T]]()
	alone, wrong := r.One(parsed(t, `{"v":`+text+`}`), "")
	require.Nil(t, wrong)
	assert.Equal(t, want, alone.Value)
	all, wrong := r.Many(parsed(t, list(text, text, text)))
	require.Nil(t, wrong)
	assert.Equal(t, []box[T]{{want}, {want}, {want}}, all)
}

// assertRejects asserts that a value is an error, alone and in a list after good ones.
func assertRejects[T any](t *testing.T, good, text, reason string) {
	t.Helper()
	r := doc.RecordOf[box[T]]()
	_, wrong := r.One(parsed(t, `{"v":`+text+`}`), "")
	assertError(t, wrong, "/v", reason)
	listed := parsed(t, list(good, good, text))
	all, wrong := r.Many(listed)
	assert.Nil(t, wrong)
	assert.Len(t, all, 2)
	assertError(t, listed.Doc().FirstSkipped(), "/2/v", reason)
}

func assertError(t *testing.T, wrong *doc.Error, pointer, reason string) {
	t.Helper()
	require.NotNil(t, wrong)
	assert.Equal(t, pointer, wrong.Pointer)
	assert.EqualError(t, wrong.Err, reason)
	assert.False(t, wrong.Syntax)
}

// notes describes notes: kind, pointer and reason of each.
func notes(d *doc.Doc) (all []string) {
	kinds := map[doc.Kind]string{
		doc.UnknownField: "unknown field", doc.UnknownValue: "unknown value", doc.UnexpectedValue: "unexpected",
		doc.Mismatch: "mismatch", doc.Unreadable: "unreadable", doc.Skipped: "skipped", doc.Lacking: "lacking",
	}
	for _, n := range d.Notes() {
		text := kinds[n.Kind] + " " + n.Pointer
		if n.Again {
			text = "again " + text
		}
		all = append(all, strings.TrimSuffix(text+": "+n.Reason(), ": "))
	}
	return all
}
