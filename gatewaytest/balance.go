package gatewaytest

import (
	"net/http"
	"net/url"
	"slices"
)

// A BalanceEntry is the account's balance of a coin on one network. Its JSON form
// is an invention.
type BalanceEntry struct {
	CoinSymbol  string `json:"coinSymbol"`  // ticker symbol of the coin
	NetworkName string `json:"networkName"` // name of the network
	Balance     string `json:"balance"`     // a decimal number
}

// Balances returns a copy of the balances.
func (s *Server) Balances() []BalanceEntry { return copyOf(s, &s.balances) }

// SetBalance sets the balance of a coin on a network, and adds an entry if there
// is none yet. The amount is served as given.
func (s *Server) SetBalance(symbol, network, amount string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.balances {
		if b.CoinSymbol == symbol && b.NetworkName == network {
			s.balances[i].Balance = amount
			return
		}
	}
	s.balances = append(s.balances, BalanceEntry{symbol, network, amount})
}

// balance carries out a balance lookup. The lock is held.
func (s *Server) balance(c *call) response {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return failure(http.StatusBadRequest, "the query is not valid")
	}
	symbol, network := query.Get("coinSymbol"), query.Get("networkName")
	found := slices.DeleteFunc(slices.Clone(s.balances), func(b BalanceEntry) bool {
		return symbol != "" && b.CoinSymbol != symbol || network != "" && b.NetworkName != network
	})
	if len(found) == 0 {
		return failure(http.StatusNotFound, "no such balance")
	}
	return success(c.status, found)
}

// seedBalances returns the initial balances of a server.
func seedBalances() []BalanceEntry {
	return []BalanceEntry{
		{"BTC", "Bitcoin", "0.48215003"},
		{"ETH", "Ethereum", "3.250000000000000001"},
		{"USDT", "Tron", "1520.75"},
		{"USDT", "Ethereum", "310.5"},
		{"USDT", "BNB Smart Chain (BEP20)", "0"},
		{"TRX", "Tron", "845.120000"},
	}
}
