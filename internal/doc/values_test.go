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

// I-55
func TestRecord_amount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, coefficient string
		exponent                int32
	}{
		{"a number", `1.10`, "110", -2},
		{"a number that float64 cannot hold", `0.1000000000000000055511151231257827`, "1000000000000000055511151231257827", -34},
		{"a text", `"1.10"`, "110", -2},
		{"the largest exponent", `1e64`, "1", 64},
		{"128 digits", `"` + strings.Repeat("9", 128) + `"`, strings.Repeat("9", 128), 0},
		{"a negative number", `-1.50`, "-150", -2},
		{"zero with decimal places", `0.00`, "0", -2},
		{"19 digits", `"9999999999999999999"`, "9999999999999999999", 0},
		{"a text in escapes", `"\u0031.5"`, "15", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want, err := decimal.NewFromString(tt.coefficient)
			require.NoError(t, err)
			want = want.Shift(tt.exponent)
			all, wrong := doc.RecordOf[box[decimal.Decimal]]().Many(parsed(t, list(tt.text, tt.text, tt.text)))
			require.Nil(t, wrong)
			alone, err := parsed(t, tt.text).Amount()
			require.NoError(t, err)
			for _, got := range []decimal.Decimal{alone, all[0].Value, all[1].Value, all[2].Value} {
				assert.Equal(t, tt.coefficient, got.Coefficient().String())
				assert.Equal(t, tt.exponent, got.Exponent())
				assert.True(t, want.Equal(got))
			}
		})
	}
}

// A bad amount is rejected by its text, before any digits are built.
// I-55
func TestRecord_amount_rejects(t *testing.T) {
	t.Parallel()
	const (
		notDecimal = "is not a decimal number"
		notMoney   = "is not an amount of money: over 128 characters or an exponent beyond 64"
	)
	for _, tt := range []struct{ name, text, reason string }{
		{"a huge exponent in a text", `"1e1000000000"`, notMoney},
		{"a huge exponent", `1e99999`, notMoney},
		{"spaces around", `" 1 "`, notDecimal},
		{"a comma for the point", `"1,5"`, notDecimal},
		{"null", `null`, "is null, not an amount"},
		{"a boolean", `false`, "is a boolean, not an amount"},
		{"an object", `{}`, "is an object, not an amount"},
		{"an array", `[]`, "is an array, not an amount"},
		{"129 digits", strings.Repeat("9", 129), notMoney},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertRejects[decimal.Decimal](t, "1", tt.text, tt.reason)
			amount, err := parsed(t, tt.text).Amount()
			assert.Zero(t, amount)
			assert.EqualError(t, err, tt.reason)
		})
	}
}

func TestRecord_int(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"a point and a zero", `1.0`, 1},
		{"an exponent that makes it an integer", `1.5e1`, 15},
		{"minus one is data", `-1`, -1},
		{"the largest", strconv.Itoa(math.MaxInt), math.MaxInt},
		{"the smallest", strconv.Itoa(math.MinInt), math.MinInt},
		{"the largest, by an exponent", strconv.Itoa(math.MaxInt) + "e0", math.MaxInt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertReads(t, tt.text, tt.want)
		})
	}
	const outOfRange = "is not an integer in range"
	for _, tt := range []struct{ name, text, reason string }{
		{"a fraction", `1.5`, outOfRange},
		{"more than 64 bits", `9999999999999999999`, outOfRange},
		{"one above the largest", strconv.FormatUint(math.MaxInt+1, 10), outOfRange},
		{"one below the smallest", "-" + strconv.FormatUint(math.MaxInt+2, 10), outOfRange},
		{"a huge exponent", `1e1000000000`, outOfRange},
		{"a text", `"12"`, "is text, not a number"},
		{"null", `null`, "is null, not a number"},
		{"a boolean", `true`, "is a boolean, not a number"},
		{"an object", `{}`, "is an object, not a number"},
		{"an array", `[1]`, "is an array, not a number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertRejects[int](t, "1", tt.text, tt.reason)
		})
	}
}

func TestRecord_bool(t *testing.T) {
	t.Parallel()
	assertReads(t, `true`, true)
	assertReads(t, `false`, false)
	for _, tt := range []struct{ name, text, reason string }{
		{"true as text", `"true"`, "is text, not a boolean"},
		{"one", `1`, "is a number, not a boolean"},
		{"null", `null`, "is null, not a boolean"},
		{"an object", `{}`, "is an object, not a boolean"},
		{"an array", `[true]`, "is an array, not a boolean"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertRejects[bool](t, "true", tt.text, tt.reason)
		})
	}
}

func TestRecord_time(t *testing.T) {
	t.Parallel()
	second := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name, text string
		want       time.Time
	}{
		{"seconds", `"2024-01-02T03:04:05Z"`, second},
		{"milliseconds", `"2024-01-02T03:04:05.678Z"`, second.Add(678 * time.Millisecond)},
		{"another offset", `"2024-01-02T06:34:05+03:30"`, second},
		{"an offset without a colon", `"2024-01-02T06:34:05+0330"`, second},
		{"twelve digits of a second", `"2024-01-02T03:04:05.123456789012Z"`, second.Add(123456789)},
		{"no zone", `"2024-01-02T03:04:05"`, second},
		{"a space for the T", `"2024-01-02 03:04:05"`, second},
		{"a space for the T, and an offset", `"2024-01-02 06:34:05+03:30"`, second},
		{"all zeros", `"0000-00-00 00:00:00"`, time.Time{}},
		{"nothing", `""`, time.Time{}},
		{"seconds since 1970", `1704164645`, time.Time{}},
		{"a leap second", `"2016-12-31T23:59:60Z"`, time.Time{}},
		{"the year 10000 in UTC", `"9999-12-31T23:00:00-01:00"`, time.Time{}},
		{"the year -1 in UTC", `"0000-01-01T00:00:00+01:00"`, time.Time{}},
		{"the 31st of February", `"2024-02-31T03:04:05Z"`, time.Time{}},
		{"null", `null`, time.Time{}},
		{"a boolean", `true`, time.Time{}},
		{"an object", `{"a":1}`, time.Time{}},
		{"an array", `[{"a":1}]`, time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertReads(t, tt.text, tt.want)
		})
	}
}

func TestRecord_text(t *testing.T) {
	t.Parallel()
	assertReads(t, `""`, "")
	for _, tt := range []struct{ name, text, want string }{
		{"plain", `"abc"`, "abc"},
		{"in escapes", `"\u0061\n\"\\"`, "a\n\"\\"},
		{"a pair of surrogates", `"\ud83d\ude00"`, "😀"},
		{"beyond ASCII", `"Сеть"`, "Сеть"},
		{"spaces are kept", `" a "`, " a "},
		{"the key is not", `"a ` + canary + ` b"`, "a [REDACTED] b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, read := range textReaders {
				got, wrong := read(parsed(t, list(tt.text, tt.text, tt.text)))
				require.Nil(t, wrong, name)
				assert.Equal(t, []string{tt.want, tt.want, tt.want}, got, name)
			}
		})
	}
	for name, read := range textReaders {
		for text, reason := range map[string]string{
			`null`: "is null, not text", `1`: "is a number, not text", `true`: "is a boolean, not text", `{}`: "is an object, not text",
			`["a"]`: "is an array, not text", `""`: "is empty",
		} {
			if name == "any" && text == `""` {
				continue
			}
			_, wrong := read(parsed(t, list(text)))
			assertError(t, wrong, "/0/v", reason)
			listed := parsed(t, list(`"a"`, `"a"`, text))
			_, wrong = read(listed)
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

func TestRecord_enumeration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       state
		known      bool
	}{
		{"the first", `"NEW"`, "NEW", true},
		{"in escapes", `"\u0044ONE"`, "DONE", true},
		{"another text is kept", `"HELD"`, "HELD", false},
		{"with a space it is another text", `"DONE "`, "DONE ", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := parsed(t, `{"v":`+tt.text+`}`)
			got, wrong := doc.RecordOf[box[state]]().One(n, "")
			require.Nil(t, wrong)
			assert.Equal(t, tt.want, got.Value)
			if tt.known {
				assert.Empty(t, n.Doc().Notes())
			} else {
				assert.Equal(t, []string{"unknown value /v: " + tt.text + " is not documented"}, notes(n.Doc()))
			}
		})
	}
	t.Run("in another case it is written in upper case", func(t *testing.T) {
		t.Parallel()
		n := parsed(t, `{"v":"Done"}`)
		got, wrong := doc.RecordOf[box[state]]().One(n, "")
		require.Nil(t, wrong)
		assert.Equal(t, state("DONE"), got.Value)
		assert.Equal(t, []string{`unexpected /v: "Done" is documented in upper case`}, notes(n.Doc()))
	})
}
