package attempt

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// takeAll takes tokens as often as there are so many left.
func takeAll(b *Budget, cost int64) (taken int) {
	for b.Take(cost) {
		taken++
	}
	return taken
}

func TestBudget_size(t *testing.T) {
	t.Parallel()
	for cost, want := range map[int64]int{retryCost: 35, throttledCost: 100, 500: 1, 501: 0, 1: 500} {
		var b Budget
		assert.Equal(t, want, takeAll(&b, cost), "of %d tokens each", cost)
		assert.False(t, b.Take(cost), "it stays empty")
	}
}

// A Take that fails takes nothing: a smaller one still succeeds.
func TestBudget_rest(t *testing.T) {
	t.Parallel()
	var b Budget
	takeAll(&b, retryCost)
	assert.Equal(t, 2, takeAll(&b, throttledCost))
	assert.EqualValues(t, 500, b.spent.Load())
}

func TestBudget_Refund(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name              string
		spent, cost, want int64
	}{
		{"what a retry took", 100, 14, 86},
		{"one token", 100, 1, 99},
		{"nothing", 100, 0, 100},
		{"the last token", 1, 1, 0},
		{"more than was spent", 5, 14, 0},
		{"of a full budget", 0, 14, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var b Budget
			b.spent.Store(tt.spent)
			b.Refund(tt.cost)
			assert.Equal(t, tt.want, b.spent.Load())
		})
	}
}

// However many goroutines take and refund, it is never overdrawn nor more than full.
func TestBudget_concurrentUse(t *testing.T) {
	t.Parallel()
	var b Budget
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if b.Take(retryCost) {
					b.Refund(retryCost)
				}
				if spent := b.spent.Load(); spent < 0 || spent > budgetSize {
					t.Errorf("spent %d", spent)
				}
			}
		})
	}
	all.Wait()
	assert.Zero(t, b.spent.Load(), "what each took was refunded")
}

// Tokens that many goroutines take at a time are counted once each.
func TestBudget_concurrentTakes(t *testing.T) {
	t.Parallel()
	var b Budget
	var all sync.WaitGroup
	taken := make([]int, 8)
	for i := range taken {
		all.Go(func() { taken[i] = takeAll(&b, 1) })
	}
	all.Wait()
	total := 0
	for _, n := range taken {
		total += n
	}
	assert.Equal(t, budgetSize, total)
}

// BenchmarkBudget is what a call costs: one load for a success, one swap for a retry,
// and no lock.
func BenchmarkBudget(b *testing.B) {
	b.Run("a success, the budget is full", func(b *testing.B) {
		var full Budget
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				full.Refund(1)
			}
		})
	})
	b.Run("a retry and its success", func(b *testing.B) {
		var used Budget
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if used.Take(retryCost) {
					used.Refund(retryCost)
				}
			}
		})
	})
}
