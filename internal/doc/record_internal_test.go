package doc

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/redact"
)

// In the records of a list equal amounts, times, references and records are read once.
func TestRecord_Many_recurring(t *testing.T) {
	t.Parallel()
	type inner struct {
		ID string `json:"id"`
	}
	type record struct {
		Price  decimal.Decimal `json:"price"`
		At     time.Time       `json:"at"`
		PartID string          `json:"partId" check:"equals part.id"`
		Part   inner           `json:"part"`
		Name   string          `json:"name"`
	}
	reads, r := make([]int, 5), RecordOf[record]()
	for i, m := range r.members {
		r.members[i].read = func(from *reading, n Node, into reflect.Value) *fault {
			reads[i]++
			return m.read(from, n, into)
		}
	}
	text := `{"price":"1.50","at":"2024-01-02T03:04:05Z","partId":"p","part":{"id":"p"},"name":"n"}`
	var d Doc
	require.Nil(t, d.Parse([]byte("["+strings.Repeat(text+",", 9)+text+"]"), redact.Redactor{}, MaxListing))
	list, wrong := r.Many(d.Root())
	require.Nil(t, wrong)
	assert.Equal(t, slices.Repeat(list[:1], 10), list)
	assert.Equal(t, []int{2, 2, 2, 2, 10}, reads, "those of the first record, which may be the only one, and then once")
}

// The values that are kept are bounded, and errors are not kept.
func TestRecord_Many_recurringBound(t *testing.T) {
	t.Parallel()
	type record struct {
		Price decimal.Decimal `json:"price"`
	}
	ms, from := membersOf(reflect.TypeFor[record](), ""), &reading{recurring: make([]map[string]recurred, 1)}
	read := func(text string) (got record, wrong *fault) {
		var d Doc
		require.Nil(t, d.Parse([]byte(text), redact.Redactor{}, MaxListing))
		return got, ms.readMember(from, 0, d.Root(), reflect.ValueOf(&got.Price).Elem())
	}
	for i := range 2 * maxRecurring {
		_, wrong := read(strconv.Itoa(i))
		require.Nil(t, wrong)
		require.LessOrEqual(t, len(from.recurring[0]), maxRecurring)
	}
	clear(from.recurring[0])
	_, wrong := read(`"x"`)
	require.NotNil(t, wrong)
	assert.Empty(t, from.recurring[0])
}
