package gatewaytest

import (
	"net/http"
	"slices"
)

// A CoinNetwork is a coin-network record, with the documented fields. Amounts are
// texts. The units of ArrivalTime and ExpirationTime are not documented.
type CoinNetwork struct {
	ID             string  `json:"id"`
	WithdrawalFee  string  `json:"withdrawalFee"`
	SwapFee        string  `json:"swapFee"`
	MinWithdraw    string  `json:"minWithdraw"`
	MaxWithdraw    string  `json:"maxWithdraw"`
	Depositable    bool    `json:"depositable"`
	Withdrawable   bool    `json:"withdrawable"`
	Confirmations  int     `json:"confirmation"`
	ArrivalTime    int     `json:"arrivalTime"`
	ExpirationTime int     `json:"expirationTime"`
	NetworkID      string  `json:"networkId"`
	CoinID         string  `json:"coinId"`
	CreatedAt      string  `json:"created_at"`
	UpdatedAt      string  `json:"updated_at"`
	Network        Network `json:"network"`
	Coin           Coin    `json:"coin"`
}

// A Network is a network record, with the documented fields.
type Network struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	IsActive  bool   `json:"isActive"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
}

// A Coin is a coin record, with the documented fields.
type Coin struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Symbol    string `json:"symbol"`
	Precision int    `json:"precision"`
	MinAmount string `json:"minAmount"` // with eight fractional digits
	IsActive  bool   `json:"isActive"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
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
	isID := slices.ContainsFunc(s.catalog, func(p CoinNetwork) bool { return p.ID == segment })
	return !isID && s.coin(segment).ID != ""
}

// coin returns a coin of the catalog. For a coin that is not in it, only the
// symbol is set. The lock is held.
func (s *Server) coin(symbol string) Coin {
	for _, p := range s.catalog {
		if p.Coin.Symbol == symbol {
			return p.Coin
		}
	}
	return Coin{Symbol: symbol}
}

// coinNetwork carries a lookup by identifier out. The lock is held.
func (s *Server) coinNetwork(id string) response {
	return s.pair(func(p CoinNetwork) bool { return p.ID == id })
}

// coinNetworkBySymbol carries a lookup by symbol, or by symbol and network, out.
// The lock is held.
func (s *Server) coinNetworkBySymbol(args []string) response {
	if len(args) == 2 {
		return s.pair(func(p CoinNetwork) bool { return p.Coin.Symbol == args[0] && p.Network.Name == args[1] })
	}
	found := []CoinNetwork{}
	for _, p := range s.catalog {
		if p.Coin.Symbol == args[0] {
			found = append(found, p)
		}
	}
	switch {
	case len(found) == 0: // the catalog has been replaced since the request was routed
		return noPair()
	case s.shapes["symbol"] == SymbolAsRecord:
		return success(http.StatusOK, found[0])
	}
	return success(http.StatusOK, found)
}

// pair responds with the first record that is wanted. The lock is held.
func (s *Server) pair(wanted func(CoinNetwork) bool) response {
	i := slices.IndexFunc(s.catalog, wanted)
	switch {
	case i < 0:
		return noPair()
	case s.shapes["pair"] == PairInArray:
		return success(http.StatusOK, s.catalog[i:i+1])
	}
	return success(http.StatusOK, s.catalog[i])
}

func noPair() response {
	return failure(http.StatusNotFound, "no such coin and network")
}
