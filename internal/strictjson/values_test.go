package strictjson_test

import (
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// I-55
func TestDecoder_Amount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, coefficient string
		exponent                int32
	}{
		{"row R9: a number", `1.10`, "110", -2},
		{"row R9: a number that float64 cannot hold", `0.1000000000000000055511151231257827`, "1000000000000000055511151231257827", -34},
		{"row R9: a large number", `123456789012345678901234567890.12345678`, "12345678901234567890123456789012345678", -8},
		{"row R9: a text", `"1.10"`, "110", -2},
		{"row R9: a small exponent", `1e-7`, "1", -7},
		{"row R9: an exponent in upper case", `1E-7`, "1", -7},
		{"row R9: an exponent in a text", `"1E-7"`, "1", -7},
		{"row R9: an exponent with a plus", `"1.5e+3"`, "15", 2},
		{"row R9: the largest exponent", `1e64`, "1", 64},
		{"row R9: the smallest exponent", `1e-64`, "1", -64},
		{"row R10: 128 digits", `"` + strings.Repeat("9", 128) + `"`, strings.Repeat("9", 128), 0},
		{"row R13: a negative amount", `"-1.50"`, "-150", -2},
		{"row R13: a negative number", `-1.50`, "-150", -2},
		{"zero", `"0"`, "0", 0},
		{"zero with decimal places", `0.00`, "0", -2},
		{"minus zero", `-0`, "0", 0},
		{"18 digits", `"999999999999999999"`, "999999999999999999", 0},
		{"19 digits", `"9999999999999999999"`, "9999999999999999999", 0},
		{"a text in escapes", `"\u0031.5"`, "15", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list, d := readWhole(boxes(tt.text, tt.text, tt.text), strictjson.Options{}, strictjson.Many(boxFields((*strictjson.Decoder).Amount)))
			require.Nil(t, d.Err())
			alone, d := readWhole(tt.text, strictjson.Options{}, (*strictjson.Decoder).Amount)
			require.Nil(t, d.Err())
			node, err := nodeOf(t, tt.text).Amount()
			require.Nil(t, err)
			for _, got := range []box[decimal.Decimal]{{alone}, {node}, list[0], list[1], list[2]} {
				assert.Equal(t, tt.coefficient, got.Value.Coefficient().String())
				assert.Equal(t, tt.exponent, got.Value.Exponent())
			}
		})
	}
}

const (
	notDecimal = "is not a decimal number"
	notMoney   = "is not an amount of money: over 128 characters or an exponent beyond 64"
)

// badAmounts are no amounts, as JSON.
var badAmounts = []struct{ name, text, reason string }{
	{"row R10: a huge exponent in a text", `"1e1000000000"`, notMoney},
	{"row R10: a tiny exponent in a text", `"1e-1000000000"`, notMoney},
	{"row R10: a huge exponent", `1e99999`, notMoney},
	{"row R10: an exponent that overflows every integer", `"1e99999999999999999999999"`, notMoney},
	{"row R10: an exponent of 65", `1e65`, notMoney},
	{"row R10: an exponent of -65", `"1e-65"`, notMoney},
	{"row R11: NaN", `"NaN"`, notDecimal},
	{"row R11: infinity", `"Infinity"`, notDecimal},
	{"row R11: a minus", `"-"`, notDecimal},
	{"row R11: a plus", `"+1"`, notDecimal},
	{"row R11: nothing", `""`, "is empty"},
	{"row R11: spaces around", `" 1 "`, notDecimal},
	{"row R11: a space", `" "`, notDecimal},
	{"row R11: a comma for the point", `"1,5"`, notDecimal},
	{"row R11: thousands", `"1,000.5"`, notDecimal},
	{"row R11: an underscore", `"1_000"`, notDecimal},
	{"row R11: hexadecimal", `"0x1"`, notDecimal},
	{"row R11: another script's digit", `"१"`, notDecimal},
	{"row R11: a currency", `"1 USDT"`, notDecimal},
	{"row R11: two points", `"1.2.3"`, notDecimal},
	{"row R11: a point at the end", `"1."`, notDecimal},
	{"row R11: a point in front", `".5"`, notDecimal},
	{"row R11: a leading zero", `"01"`, notDecimal},
	{"row R11: an exponent without digits", `"1e"`, notDecimal},
	{"row R11: an exponent of a sign", `"1e-"`, notDecimal},
	{"row R11: an exponent with a point", `"1e1.5"`, notDecimal},
	{"row R11: two exponents", `"1e1e1"`, notDecimal},
	{"row R11: an exponent of nothing", `"e5"`, notDecimal},
	{"row R11: a NUL at the end", `"1\u0000"`, notDecimal},
	{"row R12: null", `null`, "is null, not an amount"},
	{"row R12: a boolean", `false`, "is a boolean, not an amount"},
	{"row R12: an object", `{}`, "is an object, not an amount"},
	{"row R12: an array", `[]`, "is an array, not an amount"},
	{"row R10: 400 digits", `"` + strings.Repeat("9", 400) + `"`, notMoney},
	{"row R10: 129 digits", strings.Repeat("9", 129), notMoney},
	{"row R10: 400 zeros", `"` + strings.Repeat("0", 400) + `"`, notMoney},
	{"row R10: 400 decimal places", `0.` + strings.Repeat("0", 400), notMoney},
}

// I-55
func TestDecoder_Amount_rejects(t *testing.T) {
	t.Parallel()
	for _, tt := range badAmounts {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertRejects(t, (*strictjson.Decoder).Amount, "1", tt.text, tt.reason)
			amount, err := nodeOf(t, tt.text).Amount()
			assert.Zero(t, amount)
			assert.EqualError(t, err, tt.reason)
		})
	}
}

// A bad amount is rejected by its text, before any digits are built. This test is
// not parallel, because it measures.
func TestDecoder_Amount_cost(t *testing.T) {
	for _, tt := range badAmounts {
		d := decoderOf(tt.text, strictjson.Options{})
		assert.Less(t, allocated(func() { d.Amount() }), uint64(64<<10), tt.name)
		require.NotNil(t, d.Err(), tt.name)
	}
}

// allocated is how many bytes the program allocates while a function runs.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestDecoder_Int(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"row R15: a point and a zero", `1.0`, 1},
		{"row R15: an exponent", `1e3`, 1000},
		{"row R15: an exponent that makes it an integer", `1.5e1`, 15},
		{"row R15: many zeros", `20.000000`, 20},
		{"row R15: minus one is data", `-1`, -1},
		{"zero", `0`, 0},
		{"minus zero", `-0`, 0},
		{"the largest", strconv.Itoa(math.MaxInt), math.MaxInt},
		{"the smallest", strconv.Itoa(math.MinInt), math.MinInt},
		{"the largest, by an exponent", strconv.Itoa(math.MaxInt) + "e0", math.MaxInt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertReads(t, (*strictjson.Decoder).Int, tt.text, tt.want)
		})
	}
	const outOfRange = "is not an integer in range"
	for _, tt := range []struct{ name, text, reason string }{
		{"row R15: a fraction", `1.5`, outOfRange},
		{"row R15: a fraction by an exponent", `15e-1`, outOfRange},
		{"row R15: more than 64 bits", `9999999999999999999`, outOfRange},
		{"row R15: one above the largest", strconv.FormatUint(math.MaxInt+1, 10), outOfRange},
		{"row R15: one below the smallest", "-" + strconv.FormatUint(math.MaxInt+2, 10), outOfRange},
		{"row R15: more than 64 bits by an exponent", `1e19`, outOfRange},
		{"row R15: a huge exponent", `1e1000000000`, outOfRange},
		{"row R15: a text", `"12"`, "is text, not a number"},
		{"row R15: null", `null`, "is null, not a number"},
		{"a boolean", `true`, "is a boolean, not a number"},
		{"an object", `{}`, "is an object, not a number"},
		{"an array", `[1]`, "is an array, not a number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertRejects(t, (*strictjson.Decoder).Int, "1", tt.text, tt.reason)
		})
	}
}

func TestDecoder_Bool(t *testing.T) {
	t.Parallel()
	assertReads(t, (*strictjson.Decoder).Bool, `true`, true)
	assertReads(t, (*strictjson.Decoder).Bool, `false`, false)
	for _, tt := range []struct{ name, text, reason string }{
		{"row R14: true as text", `"true"`, "is text, not a boolean"},
		{"row R14: one", `1`, "is a number, not a boolean"},
		{"row R14: zero", `0`, "is a number, not a boolean"},
		{"row R14: null", `null`, "is null, not a boolean"},
		{"row R14: an object", `{}`, "is an object, not a boolean"},
		{"an array", `[true]`, "is an array, not a boolean"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertRejects(t, (*strictjson.Decoder).Bool, "true", tt.text, tt.reason)
		})
	}
}

func TestDecoder_Time(t *testing.T) {
	t.Parallel()
	second := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name, text string
		want       time.Time
	}{
		{"row R18: seconds", `"2024-01-02T03:04:05Z"`, second},
		{"row R18: milliseconds", `"2024-01-02T03:04:05.678Z"`, second.Add(678 * time.Millisecond)},
		{"row R18: microseconds", `"2024-01-02T03:04:05.000000Z"`, second},
		{"row R18: an offset of zero", `"2024-01-02T03:04:05+00:00"`, second},
		{"row R18: another offset", `"2024-01-02T06:34:05+03:30"`, second},
		{"row R18: an offset without a colon", `"2024-01-02T06:34:05+0330"`, second},
		{"row R18: nanoseconds", `"2024-01-02T03:04:05.123456789Z"`, second.Add(123456789)},
		{"row R18: twelve digits of a second", `"2024-01-02T03:04:05.123456789012Z"`, second.Add(123456789)},
		{"row R18: no zone", `"2024-01-02T03:04:05"`, second},
		{"row R18: no zone, milliseconds", `"2024-01-02T03:04:05.5"`, second.Add(500 * time.Millisecond)},
		{"row R18: a space for the T", `"2024-01-02 03:04:05"`, second},
		{"row R18: a space for the T, and a zone", `"2024-01-02 03:04:05Z"`, second},
		{"row R18: a space for the T, and an offset", `"2024-01-02 06:34:05+03:30"`, second},
		{"row R18: a letter in escapes", `"2024-01-02\u005403:04:05Z"`, second},
		{"row R18: all zeros", `"0000-00-00 00:00:00"`, time.Time{}},
		{"row R18: nothing", `""`, time.Time{}},
		{"row R18: seconds since 1970", `1704164645`, time.Time{}},
		{"row R18: seconds since 1970 as text", `"1704164645"`, time.Time{}},
		{"row R18: a leap second", `"2016-12-31T23:59:60Z"`, time.Time{}},
		{"row R18: the year 99999", `"99999-01-02T03:04:05Z"`, time.Time{}},
		{"row R18: the 31st of February", `"2024-02-31T03:04:05Z"`, time.Time{}},
		{"row R18: words", `"yesterday"`, time.Time{}},
		{"row R18: null", `null`, time.Time{}},
		{"row R18: a boolean", `true`, time.Time{}},
		{"row R18: an object", `{"a":1}`, time.Time{}},
		{"row R18: an array", `[{"a":1}]`, time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertReads(t, (*strictjson.Decoder).Time, tt.text, tt.want)
		})
	}
}

func TestDecoder_Text(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"plain", `"abc"`, "abc"},
		{"in escapes", `"\u0061\n\"\\"`, "a\n\"\\"},
		{"a pair of surrogates", `"\ud83d\ude00"`, "😀"},
		{"beyond ASCII", `"Сеть"`, "Сеть"},
		{"spaces are kept", `" a "`, " a "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertReads(t, (*strictjson.Decoder).Text, tt.text, tt.want)
			assertReads(t, (*strictjson.Decoder).NonEmpty, tt.text, tt.want)
			assertReads(t, (*strictjson.Decoder).Repeated, tt.text, tt.want)
			assertReads(t, (*strictjson.Decoder).ID, tt.text, tt.want)
		})
	}
	assertReads(t, (*strictjson.Decoder).Text, `""`, "")
}

// textMethods are the methods that read a string.
func textMethods() map[string]func(*strictjson.Decoder) string {
	return map[string]func(*strictjson.Decoder) string{
		"Text":     (*strictjson.Decoder).Text,
		"NonEmpty": (*strictjson.Decoder).NonEmpty,
		"Repeated": (*strictjson.Decoder).Repeated,
		"ID":       (*strictjson.Decoder).ID,
		"Enum":     strictjson.Enum("a", "b"),
	}
}

func TestDecoder_Text_rejects(t *testing.T) {
	t.Parallel()
	for name, read := range textMethods() {
		for _, tt := range []struct{ name, text, reason string }{
			{"null", `null`, "is null, not text"},
			{"a number", `1`, "is a number, not text"},
			{"a boolean", `true`, "is a boolean, not text"},
			{"an object", `{}`, "is an object, not text"},
			{"an array", `["a"]`, "is an array, not text"},
			{"nothing", `""`, "is empty"},
		} {
			if name == "Text" && tt.text == `""` {
				continue
			}
			t.Run(name+", "+tt.name, func(t *testing.T) {
				t.Parallel()
				assertRejects(t, read, `"a"`, tt.text, tt.reason)
			})
		}
	}
}

// A key that a service repeats is in no text, alone or in a list.
func TestDecoder_Text_key(t *testing.T) {
	t.Parallel()
	for name, read := range textMethods() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := `"a ` + canary + ` b"`
			got, d := readWhole(text, strictjson.Options{Redactor: redactor()}, read)
			require.Nil(t, d.Err())
			assert.Equal(t, "a [REDACTED] b", got)
			list, d := readWhole(boxes(text, text, text), strictjson.Options{Redactor: redactor()}, strictjson.Many(boxFields(read)))
			require.Nil(t, d.Err())
			assert.Equal(t, []box[string]{{got}, {got}, {got}}, list)
		})
	}
}

func TestDecoder_ID(t *testing.T) {
	t.Parallel()
	read := func(text, expected string) (string, *strictjson.Decoder) {
		return readWhole(text, strictjson.Options{Redactor: redactor(), ExpectID: expected}, (*strictjson.Decoder).ID)
	}
	t.Run("the expected one", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{`"w-1"`, `"\u0077-1"`} {
			got, d := read(text, "w-1")
			require.Nil(t, d.Err())
			assert.Equal(t, "w-1", got)
		}
	})
	t.Run("row R17: another one", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{`"w-2"`, `"W-1"`, `"w-1 "`, `"w-"`} {
			_, d := read(text, "w-1")
			require.NotNil(t, d.Err())
			assert.ErrorIs(t, d.Err(), strictjson.ErrMismatch)
			assert.False(t, d.Err().Syntax)
		}
	})
	t.Run("an empty one is empty, not another one", func(t *testing.T) {
		t.Parallel()
		_, d := read(`""`, "w-1")
		assertError(t, d, "", "is empty")
	})
	t.Run("an expected one that is a key", func(t *testing.T) {
		t.Parallel()
		_, d := read(`"`+canary+`"`, "w-1")
		require.NotNil(t, d.Err())
		assert.NotContains(t, d.Err().Error(), canary)
	})
}

func TestEnum(t *testing.T) {
	t.Parallel()
	type state string
	read := strictjson.Enum[state]("NEW", "DONE")
	for _, tt := range []struct {
		name, text string
		want       state
		known      bool
	}{
		{"the first", `"NEW"`, "NEW", true},
		{"the last", `"DONE"`, "DONE", true},
		{"in escapes", `"\u0044ONE"`, "DONE", true},
		{"row R16: another text is kept", `"HELD"`, "HELD", false},
		{"row R16: in lower case it is another text", `"done"`, "done", false},
		{"row R16: with a space it is another text", `"DONE "`, "DONE ", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			notes := &strictjson.Notes{}
			got, d := readWhole(`[`+tt.text+`]`, strictjson.Options{Notes: notes}, func(d *strictjson.Decoder) state {
				d.Begin('[')
				defer d.End()
				return read(d)
			})
			require.Nil(t, d.Err())
			assert.Equal(t, tt.want, got)
			if tt.known {
				assert.Empty(t, notes.All())
				return
			}
			assert.Equal(t, []strictjson.Note{{Kind: strictjson.UnknownValue, Pointer: "/0"}}, notes.All())
		})
	}
	t.Run("row R16: nothing and null are no text", func(t *testing.T) {
		t.Parallel()
		_, d := readWhole(`""`, strictjson.Options{}, read)
		assertError(t, d, "", "is empty")
		_, d = readWhole(`null`, strictjson.Options{}, read)
		assertError(t, d, "", "is null, not text")
	})
}
