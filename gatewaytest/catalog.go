package gatewaytest

import (
	"net/http"
	"slices"
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

// Catalog returns a copy of the coin-network records that the server lists. All
// new servers list the same records.
func (s *Server) Catalog() []CoinNetwork {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.catalog)
}

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
	isID := slices.ContainsFunc(s.catalog, func(p CoinNetwork) bool { return s.sameID(p.ID, segment) })
	return !isID && s.coin(segment).ID != ""
}

// coin returns a coin of the catalog. For a coin that is not in it, only the
// symbol is set. The lock is held.
func (s *Server) coin(symbol string) Coin {
	for _, p := range s.catalog {
		if s.same(p.Coin.Symbol, symbol) {
			return p.Coin
		}
	}
	return Coin{Symbol: symbol}
}

// pairsFor returns the records that a request is about. The lock is held.
func (s *Server) pairsFor(c *call) []CoinNetwork {
	found := []CoinNetwork{}
	for _, p := range s.catalog {
		switch c.op {
		case OpCoinNetwork:
			if !s.sameID(p.ID, c.args[0]) {
				continue
			}
		case OpCoinNetworkBySymbol:
			if !s.same(p.Coin.Symbol, c.args[0]) || !s.same(p.Network.Name, c.args[1]) {
				continue
			}
		case OpCoinNetworksOf:
			if !s.same(p.Coin.Symbol, c.args[0]) {
				continue
			}
		}
		found = append(found, p)
	}
	return found
}

// pair responds with the first of the records that a request is about, if there is one. The
// lock is held.
func (s *Server) pair(c *call) response {
	found := s.pairsFor(c)
	switch {
	case len(found) == 0:
		return noPair()
	case s.shapes.pair == PairInArray:
		return inShape(s.shapes.pair, http.StatusOK, found[:1])
	}
	return inShape(s.shapes.pair, http.StatusOK, found[0])
}

// pairsOf responds with the records of a symbol. The lock is held.
func (s *Server) pairsOf(c *call) response {
	found := s.pairsFor(c)
	switch {
	case len(found) == 0: // the catalog has been replaced since the request was routed
		return noPair()
	case s.shapes.symbol == SymbolAsRecord:
		return inShape(s.shapes.symbol, http.StatusOK, found[0])
	}
	return inShape(s.shapes.symbol, http.StatusOK, found)
}

func noPair() response {
	return failure(http.StatusNotFound, "no such coin and network")
}
