package gatewaytest

import "slices"

// A Rate is the price of one unit of a coin in USD and in EUR. Its JSON form is
// an invention.
type Rate struct {
	Symbol string `json:"symbol"`        // ticker symbol of the coin
	USD    string `json:"usd,omitempty"` // a decimal number
	EUR    string `json:"eur,omitempty"` // a decimal number
}

// Rates returns a copy of the rates.
func (s *Server) Rates() []Rate { return copyOf(s, &s.rates) }

// SetRate sets the rates of a coin, and adds the coin if it has none yet. The
// texts are served as given. An empty text omits that rate; two empty texts
// remove the coin.
func (s *Server) SetRate(symbol, usd, eur string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.rates, func(r Rate) bool { return r.Symbol == symbol })
	switch {
	case usd == "" && eur == "":
		s.rates = slices.DeleteFunc(s.rates, func(r Rate) bool { return r.Symbol == symbol })
	case i < 0:
		s.rates = append(s.rates, Rate{symbol, usd, eur})
	default:
		s.rates[i] = Rate{symbol, usd, eur}
	}
}

// seedRates returns the initial rates of a server: invented, plausible and fixed.
func seedRates() []Rate {
	return []Rate{
		{"BTC", "64250.18", "59310.72"},
		{"ETH", "3127.45", "2887.02"},
		{"USDT", "1.0002", "0.9233"},
		{"USDC", "0.9999", "0.9230"},
		{"DAI", "0.9998", "0.9229"},
		{"BNB", "584.30", "539.38"},
		{"SOL", "148.62", "137.19"},
		{"POL", "0.4127", "0.381"},
		{"TRX", "0.1324", "0.12222"},
		{"LTC", "71.08", "65.61"},
		{"DOGE", "0.12345678", "0.11396"},
		{"XRP", "0.5231", "0.48288"},
		{"ADA", "0.3874", "0.35761"},
		{"AVAX", "27.95", "25.80"},
	}
}
