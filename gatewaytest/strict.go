package gatewaytest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// WithStrict makes the server refuse, with status 400, a member of an invoice request and
// a parameter of a query that are not documented: for the tests of a client
// that is written by hand, where a misspelled "coinsymbol" would pass unnoticed. Without
// it they are skipped.
func WithStrict() Option {
	return func(c *config) { c.strict = true }
}

// undocumented returns the refusal of a request with a name in it that is not documented.
func (c *call) undocumented() (refusal response, refused bool) {
	members := []string{"amount", "apiKey", "apikey", "baseCurrency", "coinSymbol", "networkName", "orderId", "price"}
	for _, name := range slices.Sorted(maps.Keys(c.fields)) {
		if !slices.Contains(members, name) {
			return failure(http.StatusBadRequest, fmt.Sprintf("member %.64q is not documented", name)), true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.r.URL.Query())) {
		if c.op != OpBalance || name != "coinSymbol" && name != "networkName" {
			return failure(http.StatusBadRequest, fmt.Sprintf("query parameter %.64q is not documented", name)), true
		}
	}
	return response{}, false
}
