package attempt_test

import (
	"math"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/attempt"
)

func TestIsRetryableStatus(t *testing.T) {
	t.Parallel()
	want := []int{408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
	var got []int
	for status := range 1000 {
		if attempt.IsRetryableStatus(status) {
			got = append(got, status)
		}
	}
	assert.Equal(t, want, got)
}

func TestIsThrottled(t *testing.T) {
	t.Parallel()
	var got []int
	for status := range 1000 {
		if attempt.IsThrottled(status) {
			got = append(got, status)
		}
	}
	assert.Equal(t, []int{429, 503}, got)
}

// start is when every bubble of synctest begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// in formats a time after start.
func in(d time.Duration, layout string) string { return start.Add(d).Format(layout) }

// afterCases are headers of a response, in pairs, and what they ask for.
var afterCases = []struct {
	name    string
	headers []string
	want    time.Duration
}{
	{"1 s", []string{"Retry-After", "1"}, time.Second},
	{"30 s", []string{"Retry-After", "30"}, 30 * time.Second},
	{"a day", []string{"Retry-After", "86400"}, 24 * time.Hour},
	{"none", nil, 0},
	{"0", []string{"Retry-After", "0"}, 0},
	{"−1", []string{"Retry-After", "-1"}, 0},
	{"1.5", []string{"Retry-After", "1.5"}, 0},
	{"words", []string{"Retry-After", "abc"}, 0},
	{"empty", []string{"Retry-After", ""}, 0},
	{"2⁶³−1", []string{"Retry-After", "9223372036854775807"}, math.MaxInt64},
	{"2⁶³", []string{"Retry-After", "9223372036854775808"}, math.MaxInt64},
	{"2⁶⁴ and more", []string{"Retry-After", "99999999999999999999999999"}, math.MaxInt64},
	{"seconds that overflow as nanoseconds", []string{"Retry-After", "9223372037"}, math.MaxInt64},
	{"the most seconds that do not overflow", []string{"Retry-After", "9223372036"}, 9223372036 * time.Second},
	{"a date in the past", []string{"Retry-After", in(-time.Hour, http.TimeFormat)}, 0},
	{"the present", []string{"Retry-After", in(0, http.TimeFormat)}, 0},
	{"a date", []string{"Date", in(0, http.TimeFormat), "Retry-After", in(20*time.Second, http.TimeFormat)}, 20 * time.Second},
	{
		"a date of RFC 850",
		[]string{"Date", in(0, http.TimeFormat), "Retry-After", in(20*time.Second, "Monday, 02-Jan-06 15:04:05 GMT")},
		20 * time.Second,
	},
	{"a date of asctime", []string{"Date", in(0, http.TimeFormat), "Retry-After", in(20*time.Second, time.ANSIC)}, 20 * time.Second},
	{"a date without a Date", []string{"Retry-After", in(20*time.Second, http.TimeFormat)}, 20 * time.Second},
	{"a date and an unreadable Date", []string{"Date", "today", "Retry-After", in(20*time.Second, http.TimeFormat)}, 20 * time.Second},
	{"two headers, of which the first counts", []string{"Retry-After", "2", "Retry-After", "86400"}, 2 * time.Second},
	{"a date in the year 9999", []string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}, math.MaxInt64},
	{
		"this clock is an hour behind the service's",
		[]string{"Date", in(time.Hour, http.TimeFormat), "Retry-After", in(time.Hour+5*time.Second, http.TimeFormat)},
		5 * time.Second,
	},
	{
		"this clock is an hour ahead of the service's",
		[]string{"Date", in(-time.Hour, http.TimeFormat), "Retry-After", in(-time.Hour+5*time.Second, http.TimeFormat)},
		5 * time.Second,
	},
	{
		"this clock is years behind, and the response has no Date",
		[]string{"Retry-After", "Thu, 01 Jan 2026 00:00:00 GMT"},
		time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Sub(start),
	},
}

func TestAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range afterCases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			for i := 0; i < len(tt.headers); i += 2 {
				header.Add(tt.headers[i], tt.headers[i+1])
			}
			synctest.Test(t, func(t *testing.T) { assert.Equal(t, tt.want, attempt.After(header)) })
		})
	}
}

// A Retry-After is never negative, whatever the service sends.
func FuzzAfter(f *testing.F) {
	const now = "Tue, 02 Jan 2024 03:04:05 GMT"
	for _, seed := range []string{
		"", "0", "1", "-1", "1.5", "abc", "86400", "9223372036", "9223372037", "9223372036854775807", "99999999999999999999", " 1", "1 ",
		now, "Tue, 02 Jan 2024 03:05:05 GMT", "Mon, 01 Jan 1900 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Tuesday, 02-Jan-24 03:05:05 GMT",
		"Tue Jan  2 03:05:05 2024", "٣",
	} {
		f.Add(seed, now)
		f.Add(seed, "")
		f.Add(now, seed)
	}
	f.Fuzz(func(t *testing.T, after, date string) {
		got := attempt.After(http.Header{"Retry-After": {after}, "Date": {date}})
		if got < 0 {
			t.Fatalf("%q at %q is %v", after, date, got)
		}
		if seconds, err := strconv.ParseUint(after, 10, 33); err == nil && got != time.Duration(seconds)*time.Second {
			t.Fatalf("%q is %v", after, got)
		}
	})
}
