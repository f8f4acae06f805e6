package gateway

import "time"

// OrdersOf returns how many orders a guard in memory keeps.
func OrdersOf(g *MemoryGuard) int { return len(g.orders) }

// SetClock makes the times of an order those that a clock has shown which was set forward since.
func SetClock(g *MemoryGuard, id string, forward time.Duration) {
	row := &g.orders[orderKey{id: id}].row
	for _, at := range []*int64{&row.Begun, &row.Lease, &row.Ended, &row.OpenSince} {
		*at -= forward.Microseconds()
	}
}

// IsUnlocked reports whether a guard in memory that nobody uses can be used.
func IsUnlocked(g *MemoryGuard) bool {
	unlocked := g.mu.TryLock()
	if unlocked {
		g.mu.Unlock()
	}
	return unlocked
}
