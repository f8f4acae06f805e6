package strictjson

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A record has at most 64 members, and the last one is missed like the first.
func TestMembersOf_most(t *testing.T) {
	t.Parallel()
	var fields []reflect.StructField
	var names []string
	for i := range maxMembers + 1 {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("M%d", i), Type: reflect.TypeFor[bool](), Tag: reflect.StructTag(fmt.Sprintf(`json:"m%d"`, i)),
		})
		names = append(names, fmt.Sprintf(`"m%d":true`, i))
	}
	record := reflect.StructOf(fields[:maxMembers])
	read := func(names []string) *Decoder {
		d := &Decoder{}
		d.Reset([]byte("{"+strings.Join(names, ",")+"}"), Options{})
		membersOf(record).fill(d, reflect.New(record).Elem())
		return d
	}
	assert.Nil(t, read(names[:64]).Err())
	require.NotNil(t, read(names[:63]).Err())
	assert.Equal(t, "/m63", read(names[:63]).Err().Pointer)
	assert.Panics(t, func() { membersOf(reflect.StructOf(fields)) })
	fields[1].Tag = fields[0].Tag
	assert.Panics(t, func() { membersOf(reflect.StructOf(fields[:2])) }, "a name twice")
	fields[1] = reflect.StructField{Name: "m1", Type: reflect.TypeFor[bool](), Tag: `json:"m1"`, PkgPath: "strictjson"}
	assert.Panics(t, func() { membersOf(reflect.StructOf(fields[:2])) }, "a field that is not exported")
}

// In the records of a list equal amounts, times, references and records are read once.
func TestMany_recurring(t *testing.T) {
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
		r.members[i].read = func(d *Decoder, value jsontext.Value, into reflect.Value) {
			reads[i]++
			m.read(d, value, into)
		}
	}
	text := `{"price":"1.50","at":"2024-01-02T03:04:05Z","partId":"p","part":{"id":"p"},"name":"n"}`
	d := &Decoder{}
	d.Reset([]byte("["+strings.Repeat(text+",", 9)+text+"]"), Options{})
	list := Many(r)(d)
	require.Nil(t, d.Err())
	assert.Equal(t, slices.Repeat(list[:1], 10), list)
	assert.Equal(t, []int{2, 2, 2, 2, 10}, reads, "those of the first record, which may be the only one, and then once")
	assert.Nil(t, d.recurring, "after the list there are none")
}

// What is kept is bounded, and what is wrong is not kept.
func TestMany_recurringBound(t *testing.T) {
	t.Parallel()
	type record struct {
		Price decimal.Decimal `json:"price"`
	}
	d := &Decoder{}
	d.recurring = make(recurring, 1)
	ms := membersOf(reflect.TypeFor[record]())
	for i := range 10_000 {
		var got record
		d.readMember(ms, 0, jsontext.Value(strconv.Itoa(i)), reflect.ValueOf(&got.Price).Elem())
		require.Equal(t, strconv.Itoa(i), got.Price.String())
		require.LessOrEqual(t, len(d.recurring[0]), maxRecurring)
	}
	d.Reset([]byte("0"), Options{})
	d.Value()
	d.recurring = make(recurring, 1)
	d.readMember(ms, 0, jsontext.Value(`"x"`), reflect.ValueOf(&record{}).Elem().Field(0))
	require.NotNil(t, d.Err())
	assert.Empty(t, d.recurring[0])
}

func TestDecoder_estimateRemaining(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		size    int // of the text
		at      int // how much of it is read
		start   int // where the list starts
		records int
		want    int
	}{
		{"no record is read", 1000, 100, 0, 0, 1},
		{"nothing is read", 1000, 100, 100, 0, 1},
		{"one byte is read of the list", 102, 101, 100, 1, 2},
		{"nothing is left", 100, 100, 0, 10, 1},
		{"one byte is left", 101, 100, 0, 10, 1},
		{"as much is left", 200, 100, 0, 10, 11},
		{"as much is left, after what is before the list", 300, 200, 100, 10, 11},
		{"few records read, many left", 1_000_000, 63, 0, 63, 64},
		{"few records read, few left", 63 + 20, 63, 0, 63, 21},
		{"a sample of records", 640 * 101, 640, 0, 64, 6401 + 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &Decoder{}
			d.Reset([]byte(strings.Repeat(" ", tt.at-1)+"0"+strings.Repeat(" ", tt.size-tt.at)), Options{})
			d.Value()
			require.Equal(t, tt.at, d.Offset())
			assert.Equal(t, tt.want, d.estimateRemaining(tt.records, tt.start))
		})
	}
}
