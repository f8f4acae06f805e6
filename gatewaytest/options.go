package gatewaytest

import "strings"

// An Option changes how [NewServer] and [NewMemoryServer] start a server. If an option
// is repeated, the last one wins.
type Option func(*config)

type config struct {
	key  string
	seed Seed
}

// WithAPIKey sets the key that the server accepts, instead of a random one. The option
// panics unless the key is 1 to 4,096 printable ASCII characters without a space, which
// any client can send. Do not use a real key.
func WithAPIKey(key string) Option {
	if key == "" || len(key) > 4096 || strings.ContainsFunc(key, func(char rune) bool { return char <= ' ' || char > '~' }) {
		panic("gatewaytest: WithAPIKey wants 1 to 4,096 printable ASCII characters without a space")
	}
	return func(c *config) { c.key = key }
}

// A Seed is the data with which a server starts, see [WithSeed]. A nil field means the default data; an
// empty field that is not nil means no data.
type Seed struct {
	Coins       []CoinNetwork  `json:"coins"`       // see [Server.Catalog]
	Rates       []Rate         `json:"rates"`       // see [Server.Rates]
	Balances    []BalanceEntry `json:"balances"`    // see [Server.Balances]
	Withdrawals []Withdrawal   `json:"withdrawals"` // see [Server.AddWithdrawal]
}

// WithSeed sets the initial data of the server. The server copies them when it starts.
func WithSeed(seed Seed) Option {
	return func(c *config) { c.seed = seed }
}

// sow sets the initial data of a server that has none yet.
func (s *Server) sow(seed Seed) {
	s.catalog = initial(seed.Coins, seedCatalog)
	s.rates = initial(seed.Rates, seedRates)
	s.balances = initial(seed.Balances, seedBalances)
	for _, w := range initial(seed.Withdrawals, seedWithdrawals) {
		s.AddWithdrawal(w)
	}
}

// initial returns a copy of a list, or the default for nil.
func initial[T any](list []T, byDefault func() []T) []T {
	if list == nil {
		return byDefault()
	}
	return append([]T{}, list...) // not nil
}
