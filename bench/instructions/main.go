// Command instructions makes calls of one client in memory, to be counted by valgrind: bench/run
// does. The count of a call is the difference of two runs, by that of their calls.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/bench"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "instructions CLIENT bare|used CALLS:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments", len(args))
	}
	peers := append(bench.Peers(), byHand())
	p := slices.IndexFunc(peers, func(p bench.Peer) bool { return p.Name == args[0] })
	s := slices.IndexFunc(bench.Settings(), func(s bench.Setting) bool { return s.Name == args[1] })
	calls, err := strconv.Atoi(args[2])
	if p < 0 || s < 0 || err != nil {
		return fmt.Errorf("there is no such client, setting or number: %q", args)
	}
	read := bench.InMemory(peers[p], bench.Settings()[s])
	for range calls {
		if got, err := read(context.Background()); err != nil || got != peers[p].Want {
			return fmt.Errorf("read %q, %w", got, err)
		}
	}
	return nil
}

// byHand is the same read as that of the first client, with net/http and encoding/json.
func byHand() bench.Peer {
	p := bench.Peers()[0]
	p.Name = "net/http"
	p.New = func(base string, via *http.Client, deadline time.Duration) bench.Read {
		client := &http.Client{Transport: via.Transport, Timeout: deadline}
		return func(ctx context.Context) (string, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/withdrawal/inquiry/w-1", nil)
			if err != nil {
				return "", err
			}
			req.Header.Set("x-api-key", "key-of-a-merchant-17")
			resp, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer func() { _, _ = io.Copy(io.Discard, resp.Body); _ = resp.Body.Close() }()
			var envelope struct {
				Result struct {
					Status, Destination, Coin, Network, WithdrawRequestID string
					Amount, Fee                                           decimal.Decimal
				}
			}
			err = json.NewDecoder(resp.Body).Decode(&envelope)
			return envelope.Result.Amount.String(), err
		}
	}
	return p
}
