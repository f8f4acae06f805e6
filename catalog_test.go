package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// pairOf is a record of the listing.
func pairOf(id, coinSymbol, networkName string) string {
	return strings.NewReplacer(
		`"`+pairID+`"`, fmt.Sprintf("%q", id),
		`"USDT"`, fmt.Sprintf("%q", coinSymbol),
		`"Tron (TRC20)"`, fmt.Sprintf("%q", networkName),
	).Replace(pairJSON)
}

// listing is the body of a response with these records.
func listing(pairs ...string) string { return enveloped("[" + strings.Join(pairs, ",") + "]") }

// bigListing has 5,000 pairs: 1,000 coins, each on 5 networks.
func bigListing() string {
	var pairs []string
	for i := range 5000 {
		pairs = append(pairs, pairOf(fmt.Sprintf("id-%d", i), fmt.Sprintf("C%03d", i/5), fmt.Sprintf("Network %d", i%5)))
	}
	return listing(pairs...)
}

func TestCatalog_oneRequestForAll(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	catalog := catalogOf(t, connect(gw), gateway.CacheOptions{})
	var wg sync.WaitGroup
	seen := make([]*gateway.Catalog, 1000)
	for i := range seen {
		wg.Go(func() {
			snapshot, err := catalog.Get(t.Context())
			assert.NoError(t, err)
			seen[i] = snapshot
		})
	}
	wg.Wait()
	assertInvariants(t, seen[0], nil)
	assert.Len(t, gw.Requests(), 1)
	for _, snapshot := range seen {
		assert.Same(t, seen[0], snapshot)
	}
	require.NoError(t, catalog.Refresh(t.Context()))
	assert.Len(t, gw.Requests(), 2)
}

// A snapshot finds every pair that the listing has, and no other.
func TestCatalog(t *testing.T) {
	t.Parallel()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	client := connect(gw)
	snapshot, err := catalogOf(t, client, gateway.CacheOptions{}).Get(t.Context())
	require.NoError(t, err)
	pairs, err := client.CoinNetworks(t.Context())
	require.NoError(t, err)

	var all []gateway.CoinNetwork
	for p := range snapshot.All() {
		all = append(all, *p)
	}
	assert.Equal(t, pairs, all)
	bySymbol := map[string][]gateway.CoinNetwork{}
	for _, p := range pairs {
		bySymbol[p.Coin.Symbol] = append(bySymbol[p.Coin.Symbol], p)
		byID, ok := snapshot.ByID(p.ID)
		require.True(t, ok)
		assert.Equal(t, p, *byID)
		found, ok := snapshot.Find(p.Coin.Symbol, p.Network.Name)
		require.True(t, ok)
		assert.Same(t, byID, found, "there is one record")
	}
	require.Greater(t, len(bySymbol["USDT"]), 1)
	for symbol, want := range bySymbol {
		var got []gateway.CoinNetwork
		for _, p := range snapshot.Networks(symbol) {
			got = append(got, *p)
		}
		assert.Equal(t, want, got, symbol)
	}
	for range snapshot.All() {
		break // without a panic
	}
}

func TestCatalog_notFound(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, listing(pairOf("a", "BTC", "Bitcoin"), pairOf("b", "ETH", "Ethereum"))))
	snapshot, err := catalogOf(t, newClient(t, w.URL), gateway.CacheOptions{}).Get(t.Context())
	require.NoError(t, err)
	for _, names := range [][2]string{
		{"", ""},
		{"BTC", ""},
		{"", "Bitcoin"},
		{"btc", "Bitcoin"},
		{"BTC", "bitcoin"},
		{"BTC ", "Bitcoin"},
		{"BTC", "Ethereum"},
		{"BTCB", "itcoin"},
	} {
		p, ok := snapshot.Find(names[0], names[1])
		assert.False(t, ok, names)
		assert.Nil(t, p)
	}
	for _, id := range []string{"", "A", "a ", "c"} {
		p, ok := snapshot.ByID(id)
		assert.False(t, ok, id)
		assert.Nil(t, p)
	}
	for _, symbol := range []string{"", "btc", "LTC"} {
		assert.Nil(t, snapshot.Networks(symbol), symbol)
	}
}

// What is listed twice is not found under the name that it shares, and the
// later one is reported to the observer.
// I-48
func TestCatalog_listedTwice(t *testing.T) {
	t.Parallel()
	other := pairOf("z", "ETH", "Ethereum")
	for _, tt := range []struct {
		name     string
		pairs    []string
		byID     map[string]int // the element that is found; -1 for none
		find     map[string]int // by the network of BTC
		networks []int          // of BTC
		repeated []int
	}{
		{
			"nothing",
			[]string{pairOf("a", "BTC", "One"), pairOf("b", "BTC", "Two")},
			map[string]int{"a": 0, "b": 1},
			map[string]int{"One": 0, "Two": 1},
			[]int{0, 1},
			nil,
		},
		{
			"a pair",
			[]string{pairOf("a", "BTC", "One"), other, pairOf("b", "BTC", "One"), pairOf("c", "BTC", "Two")},
			map[string]int{"a": 0, "b": 2, "c": 3},
			map[string]int{"One": -1, "Two": 3},
			[]int{3},
			[]int{2},
		},
		{
			"a pair, three times, and nothing else",
			[]string{pairOf("a", "BTC", "One"), pairOf("b", "BTC", "One"), pairOf("c", "BTC", "One")},
			map[string]int{"a": 0, "b": 1, "c": 2},
			map[string]int{"One": -1},
			nil,
			[]int{1, 2},
		},
		{
			"an identifier",
			[]string{pairOf("a", "BTC", "One"), pairOf("a", "BTC", "Two"), other, pairOf("a", "BTC", "Three")},
			map[string]int{"a": -1, "z": 2},
			map[string]int{"One": 0, "Two": 1, "Three": 3},
			[]int{0, 1, 3},
			[]int{1, 3},
		},
		{
			"a whole record",
			[]string{other, pairOf("a", "BTC", "One"), pairOf("a", "BTC", "One")},
			map[string]int{"a": -1},
			map[string]int{"One": -1},
			nil,
			[]int{2},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var seen recorder
			w := serve(t, respond(200, listing(tt.pairs...)))
			catalog := catalogOf(t, newClient(t, w.URL, gateway.WithObserver(seen.observer())), gateway.CacheOptions{})
			snapshot, err := catalog.Get(t.Context())
			require.NoError(t, err)

			all := slices.Collect(snapshot.All())
			require.Len(t, all, len(tt.pairs), "all are listed")
			element := func(p *gateway.CoinNetwork, ok bool) int {
				assert.Equal(t, ok, p != nil)
				return slices.Index(all, p)
			}
			for id, want := range tt.byID {
				assert.Equal(t, want, element(snapshot.ByID(id)), id)
			}
			for network, want := range tt.find {
				assert.Equal(t, want, element(snapshot.Find("BTC", network)), network)
			}
			var networks []int
			for _, p := range snapshot.Networks("BTC") {
				networks = append(networks, element(p, true))
			}
			assert.Equal(t, tt.networks, networks)
			assert.Equal(t, tt.networks == nil, snapshot.Networks("BTC") == nil)
			assert.Equal(t, repeats(tt.repeated), seen.drifts)
		})
	}
}

// repeats are the drifts that are reported for elements that repeat an earlier one.
func repeats(elements []int) []gateway.Drift {
	var drifts []gateway.Drift
	for _, i := range elements {
		drifts = append(drifts, gateway.Drift{
			Operation: "coin_networks", Pointer: fmt.Sprintf("/result/%d", i), Kind: gateway.DriftMismatch,
		})
	}
	return drifts
}

// Repeated records are reported with the context of the caller, up to a bound.
func TestCatalog_observer(t *testing.T) {
	t.Parallel()
	type key struct{}
	var seen recorder
	w := serve(t, respond(200, listing(slices.Repeat([]string{pairOf("a", "BTC", "One")}, 100)...)))
	catalog := catalogOf(t, newClient(t, w.URL, gateway.WithObserver(seen.observer())), gateway.CacheOptions{})
	require.NoError(t, catalog.Refresh(context.WithValue(t.Context(), key{}, "the caller's")))

	var first64 []int
	for i := range 64 {
		first64 = append(first64, i+1)
	}
	assert.Equal(t, repeats(first64), seen.drifts)
	for _, ctx := range seen.contexts {
		assert.Equal(t, "the caller's", ctx.Value(key{}))
		call, ok := gateway.CallFromContext(ctx)
		assert.True(t, ok)
		assert.Equal(t, "coin_networks", call.Operation)
	}
}

// Appending to a shared slice makes a copy.
func TestCatalog_Networks_append(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, listing(pairOf("a", "BTC", "One"), pairOf("b", "BTC", "Two"), pairOf("c", "BTC", "Three"))))
	snapshot, err := catalogOf(t, newClient(t, w.URL), gateway.CacheOptions{}).Get(t.Context())
	require.NoError(t, err)
	networks := snapshot.Networks("BTC")
	require.Len(t, networks, 3)
	assert.Equal(t, 3, cap(networks))
	mine := append(networks, nil)
	mine[0] = nil
	assert.NotNil(t, snapshot.Networks("BTC")[0])
}

func TestCatalog_allocatesNothing(t *testing.T) {
	w := serve(t, respond(200, bigListing()))
	catalog := catalogOf(t, newClient(t, w.URL), gateway.CacheOptions{TTL: time.Hour})
	snapshot, err := catalog.Get(t.Context())
	require.NoError(t, err)
	ctx := context.Background()
	for name, look := range map[string]func() bool{
		"Get":      func() bool { s, _ := catalog.Get(ctx); return s == snapshot },
		"ByID":     func() bool { _, ok := snapshot.ByID("id-4321"); return ok },
		"Find":     func() bool { _, ok := snapshot.Find("C864", "Network 1"); return ok },
		"Networks": func() bool { return len(snapshot.Networks("C864")) == 5 },
		"All": func() bool {
			n := 0
			for range snapshot.All() {
				n++
			}
			return n == 5000
		},
	} {
		assert.True(t, look(), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { look() }), name)
	}
}

// A listing is fetched anew after the TTL, and the last one is served while the
// service is down, with the time when it was fetched.
func TestCatalog_time(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		good := respondWith(200, listing(pairJSON))
		p := scriptedClient(t, good, good, respondWith(500, refused("No.")))
		p.connect(t, once())
		catalog := catalogOf(t, p.client, gateway.CacheOptions{TTL: time.Minute, MaxStale: time.Hour})
		assert.Zero(t, catalog.Age())
		for i, step := range []struct {
			at       time.Duration
			requests int
			fetched  time.Duration
		}{
			{0, 1, 0},
			{time.Minute - 1, 1, 0},
			{time.Minute, 2, time.Minute},
			{2 * time.Minute, 3, time.Minute},
			{time.Hour + time.Minute, 4, time.Minute},
		} {
			pass(step.at - time.Since(p.begun))
			snapshot, err := catalog.Get(t.Context())
			require.NoError(t, err)
			assert.True(t, p.begun.Add(step.fetched).Equal(snapshot.FetchedAt), "step %d", i)
			assert.Equal(t, step.at-step.fetched, catalog.Age(), "step %d", i)
			assert.Len(t, p.at, step.requests, "step %d", i)
		}
		require.ErrorIs(t, catalog.Refresh(t.Context()), gateway.ErrServer)
		pass(1)
		snapshot, err := catalog.Get(t.Context())
		assertInvariants(t, snapshot, err)
		assert.ErrorIs(t, err, gateway.ErrServer)
	})
}

// catalogOf returns a cache of the listing.
func catalogOf(t testing.TB, c *gateway.Client, o gateway.CacheOptions) *gateway.Cache[*gateway.Catalog] {
	t.Helper()
	catalog, err := gateway.NewCatalog(c, o)
	require.NoError(t, err)
	return catalog
}

// A caller whose context ends gets an error of the package, without the key even if
// the cause contains it, and the request is cancelled.
func TestCatalog_contextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requestEnded := false
		c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			requestEnded = true
			return nil, req.Context().Err()
		}))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(fmt.Errorf("the session of %s has ended", canary)) })
		catalog := catalogOf(t, c, gateway.CacheOptions{})
		snapshot, err := catalog.Get(ctx)
		assertInvariants(t, snapshot, err)
		assert.ErrorIs(t, err, context.Canceled)
		assert.EqualError(t, err, "gateway: cache: wait: context canceled: the session of [REDACTED] has ended")
		synctest.Wait()
		assert.True(t, requestEnded)
	})
}

func TestCatalog_showsNoKey(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, listing(pairJSON)))
	catalog := catalogOf(t, newClient(t, w.URL, gateway.WithAPIKeyOnPublicCalls()), gateway.CacheOptions{})
	snapshot, err := catalog.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, canary, w.Requests()[0].Header.Get("X-Api-Key"), "it was sent")
	assertSilent(t, catalog, canary)
	assertSilent(t, snapshot, canary)
}
