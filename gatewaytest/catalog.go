package gatewaytest

import (
	"net/http"
	"slices"
)

// A CoinNetwork is a coin-network record, with the documented fields. Amounts are
// texts. The service states no unit for the two times.
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

// Catalogue returns a copy of the coin-network records that the server lists. A
// new server has some two dozen; in every server they are the same.
func (s *Server) Catalog() []CoinNetwork {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.catalogue)
}

// SetCatalog replaces the coin-network records by a copy of those given. Rates
// and balances stay as they are.
func (s *Server) SetCatalog(pairs []CoinNetwork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalogue = append([]CoinNetwork{}, pairs...)
}

// isSymbol reports whether a path segment can only be meant as a coin's symbol.
func (s *Server) isSymbol(segment string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isID := slices.ContainsFunc(s.catalogue, func(p CoinNetwork) bool { return p.ID == segment })
	return !isID && s.coin(segment).ID != ""
}

// coin finds a coin in the catalogue. One that is not there has a symbol and
// nothing else. The lock is held.
func (s *Server) coin(symbol string) Coin {
	for _, p := range s.catalogue {
		if p.Coin.Symbol == symbol {
			return p.Coin
		}
	}
	return Coin{Symbol: symbol}
}

// coinNetwork carries out a lookup by identifier. The lock is held.
func (s *Server) coinNetwork(id string) answer {
	return s.pair(func(p CoinNetwork) bool { return p.ID == id })
}

// coinNetworkBySymbol carries out a lookup by symbol, or by symbol and network.
// The lock is held.
func (s *Server) coinNetworkBySymbol(args []string) answer {
	if len(args) == 2 {
		return s.pair(func(p CoinNetwork) bool { return p.Coin.Symbol == args[0] && p.Network.Name == args[1] })
	}
	found := []CoinNetwork{}
	for _, p := range s.catalogue {
		if p.Coin.Symbol == args[0] {
			found = append(found, p)
		}
	}
	switch {
	case len(found) == 0: // the catalogue has been replaced since the request was routed
		return noPair()
	case s.shapes["symbol"] == SymbolAsRecord:
		return success(http.StatusOK, found[0])
	}
	return success(http.StatusOK, found)
}

// pair answers with the first record that is wanted. The lock is held.
func (s *Server) pair(wanted func(CoinNetwork) bool) answer {
	i := slices.IndexFunc(s.catalogue, wanted)
	switch {
	case i < 0:
		return noPair()
	case s.shapes["pair"] == PairInArray:
		return success(http.StatusOK, s.catalogue[i:i+1])
	}
	return success(http.StatusOK, s.catalogue[i])
}

func noPair() answer {
	return failure(http.StatusNotFound, "no such coin and network")
}
