package pricing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
)

// NewCatalogCache returns an empty cache of [gateway.Client.CoinNetworks].
func NewCatalogCache(client *gateway.Client, o CacheOptions) (*Cache[*Catalog], error) {
	return newCache(o, func(ctx context.Context) (*Catalog, error) {
		var response gateway.Response
		pairs, err := client.CoinNetworks(ctx, gateway.WithResponse(&response))
		if err != nil {
			return nil, err
		}
		catalog := NewCatalog(pairs, response.Skipped...)
		catalog.FetchedAt = response.FetchedAt
		return catalog, nil
	}, func(c *Catalog) time.Time { return c.FetchedAt })
}

// A Catalog is the listing of coins and networks at one time. Two pairs with the same names, or the same
// identifier, are not found by these: nobody knows which one is right. A skipped pair counts too.
type Catalog struct {
	// FetchedAt is when the catalog was made, by the local clock. In a [Cache] it is when the listing was read, less
	// the Age that caches report.
	FetchedAt time.Time

	// Skipped are the pairs of the listing that could not be read, as in Response.Skipped. If there
	// are any, absence from the catalog proves nothing.
	Skipped []gateway.Skipped

	pairs   []gateway.CoinNetwork
	byID    map[string]*gateway.CoinNetwork // nil for a pair that is listed twice
	byName  map[pairName]*gateway.CoinNetwork
	coinIDs map[string]string // by the symbol in lower case; empty for a symbol of several coins
}

type pairName struct{ coinSymbol, networkName string }

func nameOf(p *gateway.CoinNetwork) pairName { return pairName{p.Coin.Symbol, p.Network.Name} }

// NewCatalog returns the catalog of a listing, which it keeps, and of Response.Skipped of the call.
func NewCatalog(pairs []gateway.CoinNetwork, skipped ...gateway.Skipped) *Catalog {
	c := &Catalog{
		FetchedAt: time.Now(),
		Skipped:   skipped,
		pairs:     pairs,
		byID:      make(map[string]*gateway.CoinNetwork, len(pairs)),
		byName:    make(map[pairName]*gateway.CoinNetwork, len(pairs)),
		coinIDs:   map[string]string{},
	}
	for _, s := range skipped {
		c.byID[endpoint.IDKey(s.ID)], c.byName[pairName{s.CoinSymbol, s.NetworkName}] = nil, nil
	}
	for i := range pairs { // I-48
		p := &pairs[i]
		index(c.byID, endpoint.IDKey(p.ID), p)
		index(c.byName, nameOf(p), p)
		symbol, id := strings.ToLower(p.Coin.Symbol), endpoint.IDKey(p.Coin.ID)
		if first, known := c.coinIDs[symbol]; known && first != id {
			id = ""
		}
		c.coinIDs[symbol] = id
	}
	return c
}

// index adds a pair to an index. A key that is listed twice has no pair.
func index[K comparable](pairs map[K]*gateway.CoinNetwork, key K, p *gateway.CoinNetwork) {
	if _, known := pairs[key]; known {
		p = nil
	}
	pairs[key] = p
}

// FindID returns the pair with this identifier. The case of a UUID is ignored.
func (c *Catalog) FindID(id string) (*gateway.CoinNetwork, bool) {
	p := c.byID[endpoint.IDKey(id)]
	return p, p != nil
}

// Find returns the pair with this symbol and this network. If no pair has them, it ignores their case, and
// returns the pair only if no other matches.
func (c *Catalog) Find(coinSymbol, networkName string) (*gateway.CoinNetwork, bool) {
	p, known := c.byName[pairName{coinSymbol, networkName}]
	if known {
		return p, p != nil
	}
	for name, other := range c.byName {
		if strings.EqualFold(name.coinSymbol, coinSymbol) && strings.EqualFold(name.networkName, networkName) {
			if known {
				return nil, false
			}
			p, known = other, true
		}
	}
	return p, p != nil
}

// Networks returns the pairs with a symbol in the order of the listing, without those that are listed twice. If no
// symbol is equal, the case of letters is ignored, as long as only one symbol matches. The pairs may have several
// Coin.IDs: then they are of several coins.
func (c *Catalog) Networks(coinSymbol string) []*gateway.CoinNetwork {
	var equal, similar []*gateway.CoinNetwork
	several := false
	for p := range c.All() {
		switch {
		case c.byName[nameOf(p)] == nil || !strings.EqualFold(p.Coin.Symbol, coinSymbol):
		case p.Coin.Symbol == coinSymbol:
			equal = append(equal, p)
		default:
			similar = append(similar, p)
			several = several || p.Coin.Symbol != similar[0].Coin.Symbol
		}
	}
	if equal != nil || several {
		return equal
	}
	return similar
}

// All yields every pair in the order of the listing.
func (c *Catalog) All() iter.Seq[*gateway.CoinNetwork] {
	return func(yield func(*gateway.CoinNetwork) bool) {
		for i := range c.pairs {
			if !yield(&c.pairs[i]) {
				return
			}
		}
	}
}

// A catalogRecord is a catalog as JSON.
type catalogRecord[T any] struct {
	FetchedAt    time.Time         `json:"fetchedAt"`
	CoinNetworks T                 `json:"coinNetworks"`
	Skipped      []gateway.Skipped `json:"skipped,omitempty"`
}

// MarshalJSON writes the time, the whole listing, and the records that were skipped in it.
func (c Catalog) MarshalJSON() ([]byte, error) {
	return json.Marshal(catalogRecord[[]gateway.CoinNetwork]{c.FetchedAt, c.pairs, c.Skipped})
}

// pairRecord reads pairs strictly, so that no amount of a stored catalog is zero because it is missing.
var pairRecord = doc.RecordOf[gateway.CoinNetwork]()

// UnmarshalJSON reads what MarshalJSON has written. A pair with a member that is missing, null or malformed
// is an error, and so is an empty catalog.
func (c *Catalog) UnmarshalJSON(text []byte) error {
	var r catalogRecord[json.RawMessage]
	var pairs []gateway.CoinNetwork
	err := json.Unmarshal(text, &r)
	if err == nil && len(r.CoinNetworks) > 0 {
		pairs, err = pairRecord.UnmarshalAll(r.CoinNetworks)
	}
	if err != nil {
		return fmt.Errorf("gateway: catalog: %w", err)
	}
	// An empty catalog sells nothing, and does not say why.
	if r.FetchedAt.IsZero() || len(pairs) == 0 {
		return errors.New("gateway: catalog: fetchedAt or coinNetworks is missing or empty")
	}
	*c = *NewCatalog(pairs, r.Skipped...)
	c.FetchedAt = r.FetchedAt
	return nil
}
