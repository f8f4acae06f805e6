package gatewaytest

import "slices"

// A Seed is the data of a server: those that it starts with, see [WithSeed], and those that
// it has, see [Server.State]. A field that is nil stands for the data that are there
// without it; one that is empty but not nil stands for none. The JSON form of the records
// is that of the responses, by default.
type Seed struct {
	Coins       []CoinNetwork  `json:"coins"`              // see [Server.Catalog]
	Rates       []Rate         `json:"rates"`              // see [Server.Rates]
	Balances    []BalanceEntry `json:"balances"`           // see [Server.Balances]
	Withdrawals []Withdrawal   `json:"withdrawals"`        // see [Server.AddWithdrawal]
	Invoices    []Invoice      `json:"invoices,omitempty"` // see [Server.Invoices]
}

// WithSeed sets the initial data of the server, which are copied.
func WithSeed(seed Seed) Option {
	return func(c *config) { c.seed = seed }
}

// State returns a copy of the data of the server, none of it nil, so that a server that
// starts with them has the same. The changes of status that are planned for a withdrawal
// are not in it, nor is anything but data: no journal, fault or setting.
func (s *Server) State() Seed {
	withdrawals := s.Withdrawals()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Seed{
		Coins: copied(s.catalog), Rates: copied(s.rates), Balances: copied(s.balances),
		Withdrawals: withdrawals, Invoices: copied(s.invoices.items),
	}
}

// copied returns a copy of a list that is not nil.
func copied[T any](list []T) []T { return append([]T{}, list...) }

// SetState replaces each list of the data of the server whose field is not nil.
func (s *Server) SetState(to Seed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to.Coins != nil {
		s.catalog = slices.Clone(to.Coins)
	}
	if to.Rates != nil {
		s.rates = slices.Clone(to.Rates)
	}
	if to.Balances != nil {
		s.balances = slices.Clone(to.Balances)
	}
	if to.Withdrawals != nil {
		s.withdrawals = nil
		for _, w := range to.Withdrawals {
			s.addWithdrawal(w)
		}
	}
	if to.Invoices != nil {
		s.invoices = history[Invoice]{limit: s.invoices.limit}
		clear(s.first)
		for _, i := range to.Invoices {
			s.keep(i)
		}
	}
}
