package gateway

// OrdersOf returns how many orders a guard in memory keeps.
func OrdersOf(g *MemoryGuard) int { return len(g.orders) }
