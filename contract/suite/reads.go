package suite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/documented/fields"
)

// listing are the cases of the listing and of the exchange rates.
func listing() []Case {
	return []Case{
		{
			Name: "the listing is in the envelope of a success", Where: "I-38, I-40, I-42",
			Check: withListing(func(_ []gateway.CoinNetwork, r gateway.Response) error { return documented(r) }),
		},
		{
			Name: "every record of the listing has all its fields", Where: "I-45, I-57 to I-91",
			Check: withListing(func(_ []gateway.CoinNetwork, r gateway.Response) error { return everyPair(r.Result) }),
		},
		{
			Name: "networkId and coinId are the identifiers of the records in the pair", Where: "I-68, I-69",
			Check: withListing(func(pairs []gateway.CoinNetwork, _ gateway.Response) error { return identified(pairs) }),
		},
		{
			Name: "the listing has one element per coin-network pair", Where: "I-45",
			Check: withListing(func(pairs []gateway.CoinNetwork, _ gateway.Response) error { return listedOnce(pairs) }),
		},
		{Name: "the exchange rates cover every active coin", Where: "I-94", Check: rates},
	}
}

// lookups are the cases of single records.
func lookups() []Case {
	return []Case{
		{Name: "a pair is found by its identifier from the listing", Where: "I-14, I-49", Check: eachPair(byID)},
		{Name: "a pair is found by the coin's symbol and the network's name", Where: "I-15, I-49", Check: eachPair(bySymbol)},
		{
			Name: "a coin is found by its symbol alone, because the network's name is not required", Where: "I-16",
			Check: eachPair(bySymbolAlone),
		},
		{
			Name: "a lookup of a pair that is not listed returns a success or the envelope of an error", Where: "I-152",
			Check: func(ctx context.Context, t Target) error {
				r, err := t.get(ctx, "/api/networks-coins/00000000-0000-4000-8000-000000000000", http.Header{})
				if err != nil || r.success() == nil {
					return err
				}
				return r.refusal("")
			},
		},
	}
}

// withListing makes the check of a case from a check of the listing.
func withListing(check func([]gateway.CoinNetwork, gateway.Response) error) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		c, err := t.client()
		if err != nil {
			return err
		}
		var r gateway.Response
		pairs, err := c.CoinNetworks(ctx, gateway.WithResponse(&r))
		if err != nil {
			return err
		}
		return check(pairs, r)
	}
}

func everyPair(result []byte) error {
	value, _ := fields.Parse(result)
	records, ok := value.([]any)
	if !ok {
		return errors.New("the result is not an array")
	}
	var wrong []error
	for i, record := range records {
		if err := check(record, fields.Pair); err != nil {
			wrong = append(wrong, fmt.Errorf("record %d: %w", i, err))
		}
	}
	return errors.Join(wrong...)
}

func identified(pairs []gateway.CoinNetwork) error {
	for _, p := range pairs {
		if p.NetworkID != p.Network.ID || p.CoinID != p.Coin.ID {
			return fmt.Errorf("pair %q: networkId %q of network %q, coinId %q of coin %q", p.ID, p.NetworkID, p.Network.ID, p.CoinID, p.Coin.ID)
		}
	}
	return nil
}

func listedOnce(pairs []gateway.CoinNetwork) error {
	type pair struct{ coin, network string }
	ids, seen := map[string]bool{}, map[pair]bool{}
	for _, p := range pairs {
		both := pair{p.CoinID, p.NetworkID}
		if ids[p.ID] || seen[both] {
			return fmt.Errorf("%s on %s, pair %q, is listed twice", p.Coin.Symbol, p.Network.Name, p.ID)
		}
		ids[p.ID], seen[both] = true, true
	}
	return nil
}

// eachPair makes the check of a case from a lookup. It looks up the first pair of the
// listing and the first whose network name must be escaped in a path; more would load
// a gateway that is in use.
func eachPair(lookup func(context.Context, Target, *gateway.Client, gateway.CoinNetwork) error) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		c, err := t.client()
		if err != nil {
			return err
		}
		pairs, err := c.CoinNetworks(ctx)
		if err != nil {
			return err
		}
		var wrong []error
		for _, p := range samples(pairs) {
			if err := lookup(ctx, t, c, p); err != nil {
				wrong = append(wrong, fmt.Errorf("%s on %s, pair %q: %w", p.Coin.Symbol, p.Network.Name, p.ID, err))
			}
		}
		return errors.Join(wrong...)
	}
}

func samples(pairs []gateway.CoinNetwork) []gateway.CoinNetwork {
	for i, p := range pairs {
		if i > 0 && strings.ContainsAny(p.Network.Name, " ()") {
			return []gateway.CoinNetwork{pairs[0], p}
		}
	}
	return pairs[:min(1, len(pairs))]
}

func byID(ctx context.Context, t Target, c *gateway.Client, want gateway.CoinNetwork) error {
	var r gateway.Response
	got, err := c.CoinNetwork(ctx, want.ID, gateway.WithResponse(&r))
	return t.found(got, want, r, err)
}

func bySymbol(ctx context.Context, t Target, c *gateway.Client, want gateway.CoinNetwork) error {
	var r gateway.Response
	got, err := c.CoinNetworkBySymbol(ctx, want.Coin.Symbol, want.Network.Name, gateway.WithResponse(&r))
	return t.found(got, want, r, err)
}

// found checks the lookup of one pair.
func (t Target) found(got *gateway.CoinNetwork, want gateway.CoinNetwork, r gateway.Response, err error) error {
	if err == nil && t.Readable && (got.ID != want.ID || got.CoinID != want.CoinID || got.NetworkID != want.NetworkID) {
		return fmt.Errorf("the response is pair %q", got.ID)
	}
	return t.accept(r, err)
}

func bySymbolAlone(ctx context.Context, t Target, c *gateway.Client, want gateway.CoinNetwork) error {
	var r gateway.Response
	got, err := c.CoinNetworksOf(ctx, want.Coin.Symbol, gateway.WithResponse(&r))
	for _, p := range got {
		if t.Readable && p.CoinID != want.CoinID {
			return fmt.Errorf("the response has pair %q, of another coin", p.ID)
		}
	}
	return t.accept(r, err)
}

func rates(ctx context.Context, t Target) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	var r gateway.Response
	got, err := c.ExchangeRates(ctx, gateway.WithResponse(&r))
	if err != nil || !t.Readable {
		return t.accept(r, err)
	}
	pairs, err := c.CoinNetworks(ctx)
	for _, p := range pairs {
		if _, ok := got.Rate(p.Coin.Symbol); !ok && p.Coin.IsActive {
			return fmt.Errorf("%s has no rate", p.Coin.Symbol)
		}
	}
	return err
}
