package gatewaytest

import (
	"fmt"
	"slices"
)

// historyLimit is how many bytes of requests, and as many of invoices, a server keeps
// without [WithHistory].
const historyLimit = 128 << 20

// WithHistory sets how many bytes of requests the server keeps in its journal, and as many
// of invoices, 128 MiB of each without it: the oldest are dropped. The option panics
// unless bytes is positive. The sizes are estimates, within a factor of 2.
func WithHistory(bytes int) Option {
	if bytes <= 0 {
		panic(fmt.Sprintf("gatewaytest: WithHistory with %d bytes, want more than 0", bytes))
	}
	return func(c *config) { c.history = bytes }
}

// Dropped returns how many requests and how many invoices the server no longer keeps, see
// [WithHistory]. A repeated order whose invoice was dropped is new.
func (s *Server) Dropped() (requests, invoices int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.dropped, s.invoices.dropped
}

// A history keeps the newest items of at most limit bytes in all, and the newest one
// whatever its size.
type history[T any] struct {
	limit   int
	size    int
	items   []T
	sizes   []int
	dropped int
}

// add adds an item of a size, and returns the items that are dropped for it.
func (h *history[T]) add(item T, size int) (dropped []T) {
	h.items, h.sizes = append(h.items, item), append(h.sizes, size)
	h.size += size
	n := 0
	for ; h.size > h.limit && n < len(h.items)-1; n++ {
		h.size -= h.sizes[n]
	}
	dropped = slices.Clone(h.items[:n])
	clear(h.items[:n]) // they are freed although the array is not
	h.items, h.sizes = h.items[n:], h.sizes[n:]
	h.dropped += n
	return dropped
}

// keep adds an invoice. The lock is held.
func (s *Server) keep(i Invoice) {
	const fixed = 400
	if _, repeated := s.first[i.OrderID]; !repeated {
		s.first[i.OrderID] = s.invoices.dropped + len(s.invoices.items)
	}
	size := fixed + len(i.OrderID) + len(i.Price) + len(i.Amount) + len(i.BaseCurrency) + len(i.CoinSymbol) + len(i.NetworkName)
	for _, old := range s.invoices.add(i, size) {
		if s.first[old.OrderID] < s.invoices.dropped {
			delete(s.first, old.OrderID)
		}
	}
}

// firstOf returns the first invoice of an order that is kept. The lock is held.
func (s *Server) firstOf(orderID string) (Invoice, bool) {
	number, ok := s.first[orderID]
	if !ok {
		return Invoice{}, false
	}
	return s.invoices.items[number-s.invoices.dropped], true
}
