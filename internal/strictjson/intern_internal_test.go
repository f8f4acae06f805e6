package strictjson

import (
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// internReads counts how often a table reads a value that it lacks.
type internReads struct {
	d     Decoder
	table internTable[int]
	reads int
}

func (r *internReads) of(json string) int {
	return interned(&r.d, &r.table, []byte(json), func(d *Decoder, value []byte) int {
		r.reads++
		if string(value) == "bad" {
			d.Fail(io.EOF)
		}
		return len(value)
	})
}

func TestInterned(t *testing.T) {
	t.Parallel()
	r := &internReads{}
	for range 3 {
		assert.Equal(t, 1, r.of("1"))
		assert.Equal(t, 2, r.of("22"))
	}
	assert.Equal(t, 2, r.reads, "each value once")
	r.of("bad")
	require.NotNil(t, r.d.Err())
	assert.NotContains(t, r.table.recent.values, "bad", "what is wrong is not kept")
}

// What recurs stays in a table, whatever comes once, and the table is bounded.
func TestInterned_bound(t *testing.T) {
	t.Parallel()
	r := &internReads{}
	for i := range maxInterned {
		r.of(strconv.Itoa(i))
	}
	assert.Len(t, r.table.recent.values, 256)
	r.of("more")
	assert.Equal(t, map[string]int{"more": 4}, r.table.recent.values)
	r.of("0")
	assert.Equal(t, 257, r.reads, "the first is still there")
	assert.Len(t, r.table.recent.values, 2, "and is recent again")
	for i := range 10_000 {
		r.of(strconv.Itoa(i + 1000))
		r.of("0")
		require.LessOrEqual(t, len(r.table.recent.values), 256)
		require.LessOrEqual(t, len(r.table.older.values), 256)
	}
	assert.Equal(t, 257+10_000, r.reads)
	r.of("1")
	assert.Equal(t, 257+10_001, r.reads, "what has not recurred is gone")
}

func TestNestedTable(t *testing.T) {
	t.Parallel()
	tables := newInternTables(2)
	nestedTable[string](tables, 0).add([]byte("a"), "x")
	nestedTable[string](tables, 1).add([]byte("a"), "y")
	for field, want := range []string{"x", "y"} {
		value, _ := nestedTable[string](tables, field).find([]byte("a"))
		assert.Equal(t, want, value)
	}
}

// In the records of a list equal amounts, times and texts are read once.
func TestMany_interns(t *testing.T) {
	t.Parallel()
	var tables *internTables
	fields := Fields[struct{ V any }]{
		{name: "amount", read: func(d *Decoder, _ int, _ *struct{ V any }) { d.Amount() }},
		{name: "time", read: func(d *Decoder, _ int, _ *struct{ V any }) { d.Time() }},
		{name: "text", read: func(d *Decoder, _ int, _ *struct{ V any }) {
			d.Repeated()
			tables = d.intern
		}},
	}
	record := `{"amount":"1.50","time":"2024-01-02T03:04:05Z","text":"a"}`
	d := &Decoder{}
	d.Reset(strings.NewReader("["+record+","+record+","+record+"]"), Options{})
	Many(fields)(d)
	require.Nil(t, d.Err())
	require.NotNil(t, tables)
	assert.Len(t, tables.amounts.recent.values, 1)
	assert.Len(t, tables.times.recent.values, 1)
	assert.Len(t, tables.texts.recent.values, 1)
	assert.Nil(t, d.intern, "after the list there are no tables")
}

func TestDecoder_estimateRemaining(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		size    int64 // of the text
		at      int   // how much of it is read
		start   int64 // where the list starts
		records int
		want    int
	}{
		{"the size is unknown", 0, 100, 0, 10, 1},
		{"the size is not known, as in HTTP", -1, 100, 0, 10, 1},
		{"no record is read", 1000, 100, 0, 0, 1},
		{"nothing is read of the list", 1000, 100, 100, 10, 1},
		{"one byte is read of the list", 102, 101, 100, 1, 2},
		{"nothing is left", 100, 100, 0, 10, 1},
		{"one byte is left", 101, 100, 0, 10, 1},
		{"more is read than was announced", 50, 100, 0, 10, 1},
		{"as much is left", 200, 100, 0, 10, 11},
		{"as much is left, after what is before the list", 300, 200, 100, 10, 11},
		{"few records read, many left", 1_000_000, 63, 0, 63, 64},
		{"few records read, few left", 63 + 20, 63, 0, 63, 21},
		{"a sample of records", 640 * 101, 640, 0, 64, 6401 + 100},
		{"more is announced than is trusted", 1 << 40, 64, 0, 64, 64<<20 + 1 + 1<<20},
		{"just as much as is trusted", 64<<20 + 64, 64, 0, 64, 64<<20 + 1 + 1<<20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &Decoder{}
			d.Reset(strings.NewReader(strings.Repeat(" ", tt.at-1)+"0"), Options{Size: tt.size})
			d.Value()
			require.Equal(t, int64(tt.at), d.Offset())
			assert.Equal(t, tt.want, d.estimateRemaining(tt.records, tt.start))
		})
	}
}

// A buffer that has become large is not kept for another text.
func TestReader_Release_buffer(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]bool{64 << 10: true, 64<<10 + 1: false} {
		r := Reader{kept: make([]byte, 1, size)}
		assert.Equal(t, want, r.Release(), size)
		assert.Empty(t, r.kept)
		assert.Nil(t, r.src)
	}
}

// A place in an array is the same place in each of its elements.
func TestWithoutIndices(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"": "", "/a": "/a", "/0": "/*", "/a/17/b/0": "/a/*/b/*", "/a1/1a": "/a1/1a", "/-1": "/-1", "/18446744073709551615": "/*",
	} {
		assert.Equal(t, want, WithoutIndices(pointer))
	}
}
