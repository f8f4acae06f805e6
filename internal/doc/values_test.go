package doc_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/doc"
)

// An amount has the digits and the exponent of its text, alone and in a list. Package money has the texts that
// are none.
// I-55
func TestRecord_amount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`1.10`: "110e-2", `"1.10"`: "110e-2", `1e64`: "1e64", `-1.50`: "-150e-2", `0.00`: "0e-2", `"\u0031.5"`: "15e-1",
		`0.1000000000000000055511151231257827`: "1000000000000000055511151231257827e-34",
		`"9999999999999999999"`:                "9999999999999999999e0",
	} {
		all, wrong := doc.RecordOf[box[decimal.Decimal]]().Many(parsed(t, list(text, text, text)))
		require.Nil(t, wrong)
		alone, err := parsed(t, text).Amount()
		require.NoError(t, err)
		for _, got := range []decimal.Decimal{alone, all[0].Value, all[1].Value, all[2].Value} {
			assert.Equal(t, want, got.Coefficient().String()+"e"+strconv.Itoa(int(got.Exponent())), text)
		}
	}
	for text, reason := range map[string]string{
		`1e99999`: "is not an amount of money: over 128 characters or an exponent beyond 64",
		`" 1 "`:   "is not a decimal number", `""`: "is empty",
		`null`: "is null, not an amount", `false`: "is a boolean, not an amount", `{}`: "is an object, not an amount",
		`[]`: "is an array, not an amount",
	} {
		assertRejects[decimal.Decimal](t, "1", text, reason)
		amount, err := parsed(t, text).Amount()
		assert.Zero(t, amount)
		assert.EqualError(t, err, reason)
	}
}

func TestRecord_int(t *testing.T) {
	t.Parallel()
	const outOfRange = "is not an integer in range"
	for text, want := range map[string]int{
		`1.0`: 1, `1.5e1`: 15, `-1`: -1, strconv.Itoa(math.MaxInt): math.MaxInt, strconv.Itoa(math.MinInt): math.MinInt,
		strconv.Itoa(math.MaxInt) + "e0": math.MaxInt,
	} {
		assertReads(t, text, want)
		assertReads(t, strconv.Quote(text), want)
		n := parsed(t, list(text, strconv.Quote(text), strconv.Quote(text)))
		_, wrong := doc.RecordOf[box[int]]().Many(n)
		require.Nil(t, wrong)
		assert.Equal(t, []string{"unexpected /1/v"}, notes(n.Doc()))
	}
	for text, reason := range map[string]string{
		`1.5`: outOfRange, `"1.5"`: outOfRange, `"x"`: outOfRange, `"+1"`: outOfRange, `" 1"`: outOfRange,
		`""`: "is text, not a number", `9999999999999999999`: outOfRange, strconv.FormatUint(math.MaxInt+1, 10): outOfRange,
		`1e1000000000`: outOfRange,
		"-" + strconv.FormatUint(math.MaxInt+2, 10): outOfRange, strconv.FormatUint(math.MaxInt+1, 10) + "e0": outOfRange,
		`null`: "is null, not a number", `true`: "is a boolean, not a number", `[1]`: "is an array, not a number",
	} {
		assertRejects[int](t, "1", text, reason)
	}
}

func TestRecord_bool(t *testing.T) {
	t.Parallel()
	assertReads(t, `true`, true)
	assertReads(t, `false`, false)
	for text, want := range map[string]bool{`1`: true, `0`: false, `"1"`: true, `"0"`: false} {
		assertReads(t, text, want)
		n := parsed(t, list(text, text))
		_, wrong := doc.RecordOf[box[bool]]().Many(n)
		require.Nil(t, wrong)
		assert.Equal(t, []string{"unexpected /0/v"}, notes(n.Doc()))
	}
	for text, reason := range map[string]string{
		`"true"`: "is text, not a boolean", `2`: "is a number, not a boolean",
		`"01"`: "is text, not a boolean", `null`: "is null, not a boolean",
	} {
		assertRejects[bool](t, "true", text, reason)
	}
}

func TestRecord_time(t *testing.T) {
	t.Parallel()
	second := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, texts := range map[time.Time][]string{
		second: {
			`"2024-01-02T03:04:05Z"`, `"2024-01-02T06:34:05+03:30"`, `"2024-01-02T06:34:05+0330"`, `"2024-01-02T03:04:05"`,
			`"2024-01-02 03:04:05"`, `"2024-01-02 06:34:05+03:30"`,
		},
		second.Add(678 * time.Millisecond): {`"2024-01-02T03:04:05.678Z"`},
		second.Add(123456789):              {`"2024-01-02T03:04:05.123456789012Z"`},
		{}: {
			`"0000-00-00 00:00:00"`, `""`, `1704164645`, `"2016-12-31T23:59:60Z"`, `"2024-02-31T03:04:05Z"`, `null`, `true`,
			`[{"a":1}]`,
			`"9999-12-31T23:00:00-01:00"`, `"0000-01-01T00:00:00+01:00"`, // the years 10000 and -1 in UTC
		},
	} {
		for _, text := range texts {
			assertReads(t, text, want)
		}
	}
}

func TestRecord_text(t *testing.T) {
	t.Parallel()
	assertReads(t, `""`, "")
	for name, read := range textReaders {
		for text, want := range map[string]string{
			`"abc"`: "abc", `"\u0061\n\"\\"`: "a\n\"\\", `"\ud83d\ude00"`: "😀", `"Сеть"`: "Сеть", `" a "`: " a ",
			`"a ` + canary + ` b"`: "a [REDACTED] b",
		} {
			got, wrong := read(parsed(t, list(text, text, text)))
			require.Nil(t, wrong, name)
			assert.Equal(t, []string{want, want, want}, got, name)
		}
		for text, reason := range map[string]string{
			`null`: "is null, not text", `1`: "is a number, not text", `true`: "is a boolean, not text",
			`{}`:    "is an object, not text",
			`["a"]`: "is an array, not text", `""`: "is empty",
		} {
			if name == "any" && text == `""` {
				continue
			}
			listed := parsed(t, list(`"a"`, `"a"`, text))
			_, wrong := read(listed)
			require.Nil(t, wrong)
			assertError(t, listed.Doc().FirstSkipped(), "/2/v", reason)
		}
	}
}

type (
	nonEmpty struct {
		Value string `json:"v" check:"nonempty"`
	}
	identified struct {
		Value string `json:"v" check:"id"`
	}
	referring struct {
		Value string `json:"v" check:"equals v"`
	}
)

// textReaders read a list of text, by each of the tags and types that text can have.
var textReaders = map[string]func(doc.Node) ([]string, *doc.Error){
	"any":            textsOf(func(b box[string]) string { return b.Value }),
	"not empty":      textsOf(func(b nonEmpty) string { return b.Value }),
	"an identifier":  textsOf(func(b identified) string { return b.Value }),
	"a reference":    textsOf(func(b referring) string { return b.Value }),
	"an enumeration": textsOf(func(b box[state]) string { return string(b.Value) }),
}

func textsOf[T any](text func(T) string) func(doc.Node) ([]string, *doc.Error) {
	r := doc.RecordOf[T]()
	return func(n doc.Node) (all []string, wrong *doc.Error) {
		records, wrong := r.Many(n)
		for _, record := range records {
			all = append(all, text(record))
		}
		return all, wrong
	}
}

// A known text in another case is written in upper case, and another text is kept; both are noted.
func TestRecord_enumeration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want state
		note string
	}{
		{`"NEW"`, "NEW", ""},
		{`"\u0044ONE"`, "DONE", ""},
		{`"HELD"`, "HELD", `unknown value /v: "HELD" is not documented`},
		{`"DONE "`, "DONE ", `unknown value /v: "DONE " is not documented`},
		{`"Done"`, "DONE", `unexpected /v: "Done" is documented in upper case`},
	} {
		n := parsed(t, `{"v":`+tt.text+`}`)
		got, wrong := doc.RecordOf[box[state]]().One(n, "")
		require.Nil(t, wrong)
		assert.Equal(t, tt.want, got.Value)
		assert.Equal(t, tt.note, strings.Join(notes(n.Doc()), "; "))
	}
}
