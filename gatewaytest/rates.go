package gatewaytest

import (
	"encoding/json"
	"slices"
)

// A Rate is the price of one unit of a coin in USD and in EUR. Its JSON form is
// an invention, see [RatesAsRecords].
type Rate struct {
	Symbol string `json:"symbol"`        // ticker symbol of the coin
	USD    string `json:"usd,omitempty"` // a decimal number
	EUR    string `json:"eur,omitempty"` // a decimal number
}

// Rates returns a copy of the rates.
func (s *Server) Rates() []Rate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rates)
}

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

// rateBody returns the result of the exchange rates in the current shape. The
// lock is held.
func (s *Server) rateBody() any {
	switch s.shapes.rates {
	case RatesAsNumbers:
		return s.rateRecords("usd", "eur", number, func(r Rate) (string, any) { return "symbol", r.Symbol })
	case RatesUpperCase:
		return s.rateRecords("USD", "EUR", quoted, func(r Rate) (string, any) { return "currency", r.Symbol })
	case RatesWithCoin:
		return s.rateRecords("usd", "eur", quoted, func(r Rate) (string, any) { return "coin", s.coin(r.Symbol) })
	case RatesBySymbol:
		bySymbol := map[string]map[string]any{}
		for _, r := range s.rates {
			bySymbol[r.Symbol] = fiats(r, "usd", "eur", quoted)
		}
		return bySymbol
	case RatesByFiat:
		byFiat := map[string]map[string]any{"usd": {}, "eur": {}}
		for _, r := range s.rates {
			for fiat, rate := range fiats(r, "usd", "eur", quoted) {
				byFiat[fiat][r.Symbol] = rate
			}
		}
		return byFiat
	default:
		return s.rates
	}
}

// rateRecords returns each rate as an object: label returns the name and value of
// its coin; the rates have the names usd and eur.
func (s *Server) rateRecords(usd, eur string, form func(string) any, label func(Rate) (string, any)) []map[string]any {
	records := []map[string]any{}
	for _, r := range s.rates {
		record := fiats(r, usd, eur, form)
		name, coin := label(r)
		record[name] = coin
		records = append(records, record)
	}
	return records
}

// fiats returns the rates that a coin has.
func fiats(r Rate, usd, eur string, form func(string) any) map[string]any {
	values := map[string]any{}
	if r.USD != "" {
		values[usd] = form(r.USD)
	}
	if r.EUR != "" {
		values[eur] = form(r.EUR)
	}
	return values
}

func quoted(s string) any { return s }

// number writes a decimal as a JSON number with all its digits.
func number(s string) any {
	if isDecimal(s) && json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return s
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
