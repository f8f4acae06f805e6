package gateway

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"time"
)

// A Catalog is a [Cache] of the listing of coins and networks. Make it with
// [Client.Catalog], once, and share it: it is safe for concurrent use.
type Catalog struct {
	cache *Cache[*CatalogSnapshot]
}

// Catalog returns an empty catalogue. Bad options and a client that was not
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
		cache.ring = c.ring
	}
	return &Catalog{cache}
}

// reportRepeated tells the observers which elements of the listing repeat an
// earlier one, as far as there are not too many.
func (c *Client) reportRepeated(ctx context.Context, repeated []int) {
	about := &callContext{ctx, opCoinNetworks}
	for _, i := range repeated[:min(len(repeated), maxDrifts)] {
		c.reportDrift(about, Drift{Operation: opCoinNetworks, Pointer: "/result/" + strconv.Itoa(i), Kind: DriftMismatch})
	}
}

// Snapshot returns the catalogue as it was fetched last, and fetches it when
// that is longer ago than the TTL: [Cache.Get] says how, and what happens when
// it fails. Besides the errors of the cache there are those of
// [Client.CoinNetworks]. On success the snapshot is never nil.
//
// GET /api/networks-coins
func (c *Catalog) Snapshot(ctx context.Context) (*CatalogSnapshot, error) {
	return c.held().Get(ctx)
}

// Refresh fetches the catalogue, however young the one that is held: see
// [Cache.Refresh].
//
// GET /api/networks-coins
func (c *Catalog) Refresh(ctx context.Context) error { return c.held().Refresh(ctx) }

// Age returns how long ago the catalogue that is held was fetched. It is 0
// when none is.
func (c *Catalog) Age() time.Duration { return c.held().Age() }

func (c *Catalog) held() *Cache[*CatalogSnapshot] {
	if c == nil {
		return nil
	}
	return c.cache
}

// A CatalogSnapshot is the listing of coins and networks at one time. It never
// changes and is safe for concurrent use. All who ask share its records and
// slices, so none may change them. Looking something up makes no call, takes no
// lock and allocates nothing.
//
// A pair of a coin and a network that is listed twice is not found by Find, nor
// is it among Networks: which of the two is right is not known. Nor is an
// identifier that is listed twice found by ByID. An [Observer] is told of both
// as [DriftMismatch] at the later element, for 64 elements of a listing at most.
type CatalogSnapshot struct {
	FetchedAt time.Time // when the answer was read, by the clock of this machine

	pairs    []CoinNetwork
	byID     map[string]*CoinNetwork // nil for what is listed twice
	byName   map[pairName]*CoinNetwork
	bySymbol map[string][]*CoinNetwork
}

type pairName struct{ coinSymbol, networkName string }

func (p *CoinNetwork) pairName() pairName { return pairName{p.Coin.Symbol, p.Network.Name} }

// newCatalogSnapshot arranges a listing. It also returns which elements have
// the identifier or the names of an earlier one.
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
		newID, newName := enter(s.byID, p.ID, p), enter(s.byName, p.pairName(), p)
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

// enter adds a pair to an index and reports whether its key is new there. A key
// that is not stands for nothing from then on.
func enter[K comparable](index map[K]*CoinNetwork, key K, p *CoinNetwork) bool {
	_, known := index[key]
	if known {
		p = nil
	}
	index[key] = p
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

// All yields every record as it is listed, those that are listed twice
// included.
func (s *CatalogSnapshot) All() iter.Seq[*CoinNetwork] {
	return func(yield func(*CoinNetwork) bool) {
		for i := range s.pairs {
			if !yield(&s.pairs[i]) {
				return
			}
		}
	}
}
