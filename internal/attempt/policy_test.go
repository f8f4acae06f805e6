package attempt

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Waits are drawn between 0 and a ceiling that doubles: of many, none reaches the
// ceiling, and some come near either end.
func TestPolicy_delay(t *testing.T) {
	t.Parallel()
	const draws = 1000
	short := Policy{BaseDelay: 100 * time.Millisecond, MaxDelay: 5 * time.Second}
	for _, tt := range []struct {
		name      string
		policy    Policy
		throttled bool
		ceilings  []time.Duration // after the first attempt, the second, …
	}{
		{"it doubles up to the longest", short, false, []time.Duration{1e8, 2e8, 4e8, 8e8, 16e8, 32e8, 5e9, 5e9, 5e9}},
		{"throttled, it begins at 1 s", short, true, []time.Duration{1e9, 2e9, 4e9, 5e9, 5e9}},
		{"throttled, a longer base is kept", Policy{BaseDelay: 3e9, MaxDelay: time.Minute}, true, []time.Duration{3e9, 6e9, 12e9}},
		{"throttled, a shorter longest is kept", Policy{BaseDelay: 1e8, MaxDelay: 2e8}, true, []time.Duration{2e8, 2e8}},
		{"a base that is the longest", Policy{BaseDelay: 2e9, MaxDelay: 2e9}, false, []time.Duration{2e9, 2e9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for i, ceiling := range tt.ceilings {
				least, most := time.Duration(math.MaxInt64), time.Duration(-1)
				for range draws {
					drawn := tt.policy.delay(i+1, tt.throttled)
					least, most = min(least, drawn), max(most, drawn)
				}
				assert.Less(t, most, ceiling, "after attempt %d", i+1)
				assert.Greater(t, most, ceiling*9/10, "after attempt %d", i+1)
				assert.GreaterOrEqual(t, least, time.Duration(0), "after attempt %d", i+1)
				assert.Less(t, least, ceiling/10, "after attempt %d", i+1)
			}
		})
	}
}

// Every wait below the ceiling is drawn, and no other. A ceiling that stays under the
// longest is not stretched to it.
func TestPolicy_delayOfNanoseconds(t *testing.T) {
	t.Parallel()
	p := Policy{BaseDelay: 2, MaxDelay: 5}
	for attempts, want := range map[int][]time.Duration{1: {0, 1}, 2: {0, 1, 2, 3}, 3: {0, 1, 2, 3, 4}, 9: {0, 1, 2, 3, 4}} {
		drawn := map[time.Duration]bool{}
		for range 1000 {
			drawn[p.delay(attempts, false)] = true
		}
		assert.Equal(t, want, slices.Sorted(maps.Keys(drawn)), "after attempt %d", attempts)
	}
}

// No wait is negative or beyond the longest, however extreme the policy.
func TestPolicy_delayOfExtremes(t *testing.T) {
	t.Parallel()
	const forever = time.Duration(math.MaxInt64)
	for _, p := range []Policy{
		{BaseDelay: 1, MaxDelay: 1},
		{BaseDelay: 1, MaxDelay: forever},
		{BaseDelay: forever, MaxDelay: forever},
		{BaseDelay: forever/2 + 1, MaxDelay: forever},
	} {
		for attempts := 1; attempts < 10; attempts++ {
			for _, throttled := range []bool{false, true} {
				for range 100 {
					drawn := p.delay(attempts, throttled)
					assert.GreaterOrEqual(t, drawn, time.Duration(0))
					assert.Less(t, drawn, p.MaxDelay)
				}
			}
		}
	}
}
