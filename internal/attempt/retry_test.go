package attempt_test

import (
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/attempt"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		is   func(status int) bool
		want []int
	}{
		{"a read may do better", attempt.IsRetryableStatus, []int{408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}},
		{"the service asks for fewer requests", attempt.IsThrottled, []int{429, 503}},
	} {
		var got []int
		for status := range 1000 {
			if tt.is(status) {
				got = append(got, status)
			}
		}
		assert.Equal(t, tt.want, got, tt.name)
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when every bubble of synctest begins
	const now = "Sat, 01 Jan 2000 00:00:00 GMT"
	for _, tt := range []struct {
		name, after, date string
		want              time.Duration
	}{
		{"nothing", "", "", 0},
		{"a second", "1", "", time.Second},
		{"less than zero", "-1", "", 0},
		{"a whole number with a point", "2.0", "", 2 * time.Second},
		{"a part of a second counts as one", "299.997", "", 300 * time.Second},
		{"no number", ".5", "", 0},
		{"two points", "1.2.3", "", 0},
		{"an exponent", "1e3", "", 0},
		{"a part beyond the most", "9223372036.5", "", math.MaxInt64},
		{"a date and a Date in UTC", "Sat, 01 Jan 2000 00:00:20 UTC", "Sat, 01 Jan 2000 00:00:05 UTC", 15 * time.Second},
		{"the most seconds that a duration holds", "9223372036", "", 9223372036 * time.Second},
		{"more", "9223372037", "", math.MaxInt64},
		{"more than 64 bits", "99999999999999999999999999", "", math.MaxInt64},
		{"a date", "Sat, 01 Jan 2000 00:00:20 GMT", now, 20 * time.Second},
		{"a date of RFC 850", "Saturday, 01-Jan-00 00:00:20 GMT", now, 20 * time.Second},
		{"a date in the past", "Fri, 31 Dec 1999 23:00:00 GMT", now, 0},
		{"a date without a Date", "Sat, 01 Jan 2000 00:00:20 GMT", "", 20 * time.Second},
		{"a date and an unreadable Date", "Sat, 01 Jan 2000 00:00:20 GMT", "today", 20 * time.Second},
		{"a date in the year 9999", "Fri, 31 Dec 9999 23:59:59 GMT", now, math.MaxInt64},
		{"this clock is an hour behind the service's", "Sat, 01 Jan 2000 01:00:05 GMT", "Sat, 01 Jan 2000 01:00:00 GMT", 5 * time.Second},
		{"this clock is years behind, and the response has no Date", "Thu, 01 Jan 2026 00:00:00 GMT", "", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Sub(start)},
	} {
		synctest.Test(t, func(t *testing.T) {
			assert.Equal(t, tt.want, attempt.After(http.Header{"Retry-After": {tt.after, "86400"}, "Date": {tt.date}}), tt.name)
		})
	}
}
