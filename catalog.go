package gateway

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// NewCatalog returns an empty cache of the listing of coins and networks. A client that
// was not made by [New] and bad options are an [*ArgumentError].
//
// GET /api/networks-coins
func NewCatalog(client *Client, o CacheOptions) (*Cache[*Catalog], error) {
	return newCache(client, o, func(ctx context.Context) (*Catalog, error) {
		pairs, err := client.CoinNetworks(ctx)
		if err != nil {
			return nil, err
		}
		catalog, repeated := indexed(pairs)
		client.reportRepeated(ctx, repeated)
		return catalog, nil
	})
}

// reportRepeated reports the elements of the listing that repeat an earlier one, within
// a bound.
func (c *Client) reportRepeated(ctx context.Context, repeated []int) {
	about := context.WithValue(ctx, callKey{}, Call{Operation: OpCoinNetworks})
	for _, i := range repeated[:min(len(repeated), strictjson.MaxNotes)] {
		c.reportDrift(about, Drift{Operation: OpCoinNetworks, Pointer: "/result/" + strconv.Itoa(i), Kind: DriftMismatch})
	}
}

// A Catalog is the listing of coins and networks at one time, from a cache of
// [NewCatalog]. It never changes and is safe for concurrent use. All callers share its records and slices, so none may
// change them. A lookup makes no call, takes no lock and does not allocate.
//
// A pair of a coin and a network that is listed twice is not found by Find and not
// among Networks, because it is unknown which of the two is right. Nor does ByID find an
// identifier that is listed twice. An [Observer] is told of both as [DriftMismatch] at
// the later element, for at most 64 elements of a listing.
type Catalog struct {
	FetchedAt time.Time // when the response was read, by the local clock

	pairs    []CoinNetwork
	byID     map[string]*CoinNetwork // nil for what is listed twice
	byName   map[pairName]*CoinNetwork
	bySymbol map[string][]*CoinNetwork
}

type pairName struct{ coinSymbol, networkName string }

func (p *CoinNetwork) pairName() pairName { return pairName{p.Coin.Symbol, p.Network.Name} }

// indexed indexes a listing. It also returns which elements have the
// identifier or the names of an earlier one.
func indexed(pairs []CoinNetwork) (c *Catalog, repeated []int) {
	c = &Catalog{
		FetchedAt: time.Now(),
		pairs:     pairs,
		byID:      make(map[string]*CoinNetwork, len(pairs)),
		byName:    make(map[pairName]*CoinNetwork, len(pairs)),
		bySymbol:  map[string][]*CoinNetwork{},
	}
	for i := range pairs {
		p := &pairs[i]
		newID, newName := index(c.byID, p.ID, p), index(c.byName, p.pairName(), p)
		if !newID || !newName {
			repeated = append(repeated, i)
		}
	}
	for i := range pairs {
		if p := &pairs[i]; c.byName[p.pairName()] != nil {
			c.bySymbol[p.Coin.Symbol] = append(c.bySymbol[p.Coin.Symbol], p)
		}
	}
	for symbol, listed := range c.bySymbol {
		c.bySymbol[symbol] = slices.Clip(listed) // an append of a caller must not write into it
	}
	return c, repeated
}

// index adds a pair to an index and reports whether its key is new there. A key that is
// not new has no pair from then on.
func index[K comparable](pairs map[K]*CoinNetwork, key K, p *CoinNetwork) bool {
	_, known := pairs[key]
	if known {
		p = nil
	}
	pairs[key] = p
	return !known
}

// ByID returns the pair of an identifier, which must match exactly.
func (c *Catalog) ByID(id string) (*CoinNetwork, bool) {
	p := c.byID[id]
	return p, p != nil
}

// Find returns the pair of a coin and a network. The symbol and the name must
// match exactly.
func (c *Catalog) Find(coinSymbol, networkName string) (*CoinNetwork, bool) {
	p := c.byName[pairName{coinSymbol, networkName}]
	return p, p != nil
}

// Networks returns the pairs of a coin in the order of the listing, or nil when
// there is none. The symbol must match exactly.
func (c *Catalog) Networks(coinSymbol string) []*CoinNetwork { return c.bySymbol[coinSymbol] }

// All yields every record in the order of the listing, repeated ones included.
func (c *Catalog) All() iter.Seq[*CoinNetwork] {
	return func(yield func(*CoinNetwork) bool) {
		for i := range c.pairs {
			if !yield(&c.pairs[i]) {
				return
			}
		}
	}
}
