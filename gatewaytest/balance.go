package gatewaytest

import (
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A BalanceEntry is the account's balance of a coin on one network. Its JSON form
// is an invention, see [BalanceAsRecords].
type BalanceEntry struct {
	CoinSymbol  string `json:"coinSymbol"`  // ticker symbol of the coin
	NetworkName string `json:"networkName"` // name of the network
	Balance     string `json:"balance"`     // a decimal number
}

// Balances returns a copy of the balances.
func (s *Server) Balances() []BalanceEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.balances)
}

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
	if refusal, refused := c.refuseHeaderKey(); refused {
		return refusal
	}
	if _, err := url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return failure(http.StatusBadRequest, "the query is not valid")
	}
	found := s.balancesFor(c)
	shape := s.shapes.balance
	switch {
	case len(found) == 0:
		return failure(http.StatusNotFound, "no such balance")
	case shape == BalanceBySymbol:
		return inShape(shape, http.StatusOK, bySymbol(found))
	case shape == BalanceAsRecord && len(found) == 1:
		return inShape(shape, http.StatusOK, found[0])
	case shape == BalanceBare && len(found) == 1:
		return inShape(shape, http.StatusOK, found[0].Balance)
	}
	return inShape(shape, http.StatusOK, found)
}

// balancesFor returns the balances that a request asks for. The lock is held.
func (s *Server) balancesFor(c *call) []BalanceEntry {
	query := c.r.URL.Query()
	symbol, network := query.Get("coinSymbol"), query.Get("networkName")
	return slices.DeleteFunc(slices.Clone(s.balances), func(b BalanceEntry) bool {
		return symbol != "" && !s.same(b.CoinSymbol, symbol) || network != "" && !s.same(b.NetworkName, network)
	})
}

// bySymbol returns the sum over the networks of each coin.
func bySymbol(entries []BalanceEntry) map[string]string {
	sums := map[string]string{}
	for _, e := range entries {
		sum, there := sums[e.CoinSymbol]
		if !there {
			sums[e.CoinSymbol] = e.Balance
			continue
		}
		sums[e.CoinSymbol] = add(sum, e.Balance)
	}
	return sums
}

// add adds two decimal numbers exactly. A text that is not a number takes the
// place of the sum, so that a test that set it finds it in the response.
func add(a, b string) string {
	switch {
	case !isDecimal(a):
		return a
	case !isDecimal(b):
		return b
	}
	var x, y big.Rat
	x.SetString(a)
	y.SetString(b)
	return x.Add(&x, &y).FloatString(max(scale(a), scale(b)))
}

// scale counts the digits after the decimal point.
func scale(s string) int {
	_, fraction, _ := strings.Cut(s, ".")
	return len(fraction)
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
