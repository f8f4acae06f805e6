package gateway

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// A Catalog is a [Cache] of the listing of coins and networks. Make it with
// [Client.Catalog], once, and share it: it is safe for concurrent use.
type Catalog struct {
	cache *Cache[*CatalogSnapshot]
}

// Catalog returns an empty catalog. Bad options and a client that was not
// made by [New] are an [*ArgumentError] of every call of Snapshot and Refresh.
func (c *Client) Catalog(o CacheOptions) *Catalog {
	cache := NewCache(func(ctx context.Context) (*CatalogSnapshot, error) {
		pairs, err := c.CoinNetworks(ctx)
		if err != nil {
			return nil, err
		}
		snapshot, repeated := newCatalogSnapshot(pairs)
		c.reportRepeated(ctx, repeated)
		return snapshot, nil
	}, o)
	if c != nil {
		cache.keyring = c.keyring
	}
	return &Catalog{cache}
}

// reportRepeated reports the elements of the listing that repeat an earlier one, within
// a bound.
func (c *Client) reportRepeated(ctx context.Context, repeated []int) {
	about := context.WithValue(ctx, operationKey{}, OpCoinNetworks)
	for _, i := range repeated[:min(len(repeated), strictjson.MaxNotes)] {
		c.reportDrift(about, Drift{Operation: OpCoinNetworks, Pointer: "/result/" + strconv.Itoa(i), Kind: DriftMismatch})
	}
}

// Snapshot returns the catalog as it was fetched last, and fetches it when that is
// longer ago than the TTL, as [Cache.Get] does, also when that fails. The errors are
// those of the cache and of [Client.CoinNetworks]. On success the snapshot is never
// nil.
//
// GET /api/networks-coins
func (c *Catalog) Snapshot(ctx context.Context) (*CatalogSnapshot, error) {
	return c.inner().Get(ctx)
}

// Refresh fetches the catalog, however young the current one is: see [Cache.Refresh].
//
// GET /api/networks-coins
func (c *Catalog) Refresh(ctx context.Context) error { return c.inner().Refresh(ctx) }

// Age returns how long ago the current catalog was fetched, or 0 without one.
func (c *Catalog) Age() time.Duration { return c.inner().Age() }

func (c *Catalog) inner() *Cache[*CatalogSnapshot] {
	if c == nil {
		return nil
	}
	return c.cache
}

// A CatalogSnapshot is the listing of coins and networks at one time. It never changes
// and is safe for concurrent use. All callers share its records and slices, so none may
// change them. A lookup makes no call, takes no lock and does not allocate.
//
// A pair of a coin and a network that is listed twice is not found by Find and not
// among Networks, because it is unknown which of the two is right. Nor does ByID find an
// identifier that is listed twice. An [Observer] is told of both as [DriftMismatch] at
// the later element, for at most 64 elements of a listing.
type CatalogSnapshot struct {
	FetchedAt time.Time // when the response was read, by the local clock

	pairs    []CoinNetwork
	byID     map[string]*CoinNetwork // nil for what is listed twice
	byName   map[pairName]*CoinNetwork
	bySymbol map[string][]*CoinNetwork
}

type pairName struct{ coinSymbol, networkName string }

func (p *CoinNetwork) pairName() pairName { return pairName{p.Coin.Symbol, p.Network.Name} }

// newCatalogSnapshot indexes a listing. It also returns which elements have the
// identifier or the names of an earlier one.
func newCatalogSnapshot(pairs []CoinNetwork) (s *CatalogSnapshot, repeated []int) {
	s = &CatalogSnapshot{
		FetchedAt: time.Now(),
		pairs:     pairs,
		byID:      make(map[string]*CoinNetwork, len(pairs)),
		byName:    make(map[pairName]*CoinNetwork, len(pairs)),
		bySymbol:  map[string][]*CoinNetwork{},
	}
	for i := range pairs {
		p := &pairs[i]
		newID, newName := index(s.byID, p.ID, p), index(s.byName, p.pairName(), p)
		if !newID || !newName {
			repeated = append(repeated, i)
		}
	}
	for i := range pairs {
		if p := &pairs[i]; s.byName[p.pairName()] != nil {
			s.bySymbol[p.Coin.Symbol] = append(s.bySymbol[p.Coin.Symbol], p)
		}
	}
	for symbol, listed := range s.bySymbol {
		s.bySymbol[symbol] = slices.Clip(listed) // an append of a caller must not write into it
	}
	return s, repeated
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
func (s *CatalogSnapshot) ByID(id string) (*CoinNetwork, bool) {
	p := s.byID[id]
	return p, p != nil
}

// Find returns the pair of a coin and a network. The symbol and the name must
// match exactly.
func (s *CatalogSnapshot) Find(coinSymbol, networkName string) (*CoinNetwork, bool) {
	p := s.byName[pairName{coinSymbol, networkName}]
	return p, p != nil
}

// Networks returns the pairs of a coin in the order of the listing, or nil when
// there is none. The symbol must match exactly.
func (s *CatalogSnapshot) Networks(coinSymbol string) []*CoinNetwork { return s.bySymbol[coinSymbol] }

// All yields every record in the order of the listing, repeated ones included.
func (s *CatalogSnapshot) All() iter.Seq[*CoinNetwork] {
	return func(yield func(*CoinNetwork) bool) {
		for i := range s.pairs {
			if !yield(&s.pairs[i]) {
				return
			}
		}
	}
}
