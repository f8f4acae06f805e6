package gatewaytest

import (
	"net/http"
	"slices"
	"strings"
)

// A CoinNetwork is a coin-network record, with the documented fields. Amounts are
// texts. The units of ArrivalTime and ExpirationTime are not documented.
type CoinNetwork struct {
	ID             string  `json:"id"`             // of the pair
	WithdrawalFee  string  `json:"withdrawalFee"`  // a decimal number
	SwapFee        string  `json:"swapFee"`        // a decimal number
	MinWithdraw    string  `json:"minWithdraw"`    // a decimal number
	MaxWithdraw    string  `json:"maxWithdraw"`    // a decimal number
	Depositable    bool    `json:"depositable"`    // whether deposits are possible
	Withdrawable   bool    `json:"withdrawable"`   // whether withdrawals are possible
	Confirmations  int     `json:"confirmation"`   // how many are required
	ArrivalTime    int     `json:"arrivalTime"`    // of no documented unit
	ExpirationTime int     `json:"expirationTime"` // of no documented unit
	NetworkID      string  `json:"networkId"`      // equals Network.ID
	CoinID         string  `json:"coinId"`         // equals Coin.ID
	CreatedAt      string  `json:"created_at"`     // as in ISO 8601, in UTC
	UpdatedAt      string  `json:"updated_at"`     // as in ISO 8601, in UTC
	Network        Network `json:"network"`        // the network
	Coin           Coin    `json:"coin"`           // the coin
}

// A Network is a network record, with the documented fields.
type Network struct {
	ID        string `json:"id"`         // in UUID format
	Name      string `json:"name"`       // for example the name of a blockchain
	IsActive  bool   `json:"isActive"`   // whether the network is active
	CreatedAt string `json:"created_at"` // as in ISO 8601, in UTC
	UpdatedAt string `json:"updated_at"` // as in ISO 8601, in UTC
}

// A Coin is a coin record, with the documented fields.
type Coin struct {
	ID        string `json:"id"`         // in UUID format
	Name      string `json:"name"`       // of the coin
	Symbol    string `json:"symbol"`     // ticker symbol, upper case
	Precision int    `json:"precision"`  // how many decimal places amounts have
	MinAmount string `json:"minAmount"`  // with eight fractional digits
	IsActive  bool   `json:"isActive"`   // whether the coin is active
	CreatedAt string `json:"created_at"` // as in ISO 8601, in UTC
	UpdatedAt string `json:"updated_at"` // as in ISO 8601, in UTC
}

// Catalog returns a copy of the coin-network records that the server lists. Without
// [WithSeed] all new servers list the same records.
func (s *Server) Catalog() []CoinNetwork { return copyOf(s, &s.catalog) }

// SetCatalog replaces the coin-network records with a copy of the given ones.
// Rates and balances do not change.
func (s *Server) SetCatalog(pairs []CoinNetwork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalog = append([]CoinNetwork{}, pairs...)
}

// isSymbol reports whether a path segment is a coin's symbol and not an identifier.
func (s *Server) isSymbol(segment string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isID := slices.ContainsFunc(s.catalog, func(p CoinNetwork) bool { return strings.EqualFold(p.ID, segment) })
	return !isID && slices.ContainsFunc(s.catalog, func(p CoinNetwork) bool { return p.Coin.Symbol == segment })
}

// lookup responds with the records that a request is about: all of a symbol, otherwise
// one. The lock is held.
func (s *Server) lookup(c *call) response {
	found := slices.DeleteFunc(slices.Clone(s.catalog), func(p CoinNetwork) bool {
		switch c.op {
		case OpCoinNetwork:
			return !strings.EqualFold(p.ID, c.args[0])
		case OpCoinNetworkBySymbol:
			return p.Coin.Symbol != c.args[0] || p.Network.Name != c.args[1]
		default: // OpCoinNetworksOf
			return p.Coin.Symbol != c.args[0]
		}
	})
	switch {
	case len(found) == 0:
		return failure(http.StatusNotFound, "no such coin and network")
	case c.op == OpCoinNetworksOf:
		return success(c.status, found)
	default:
		return success(c.status, found[0])
	}
}
