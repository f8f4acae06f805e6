package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/mock"
	"github.com/cryptogw/gateway/gatewaytest"
)

const (
	waitTimeout = 10 * time.Second // of --wait, without --timeout
	maxSeed     = 16 << 20         // bytes
)

// mockFlags are the flags of `gateway mock`.
type mockFlags struct {
	addr, key, seed  string
	empty, env, wait bool
}

func (s *session) mockCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "mock", Short: "Serve a stand-in of the gateway, for tests in any language", Args: cobra.NoArgs,
		Long: `Serves a stand-in of the gateway until Ctrl-C, with everything in memory. The gateway is
under /gateway. Tests read and change it under /_mock/:

  GET    /_mock/requests             every request, without the key
  GET    /_mock/invoices             every invoice; with ?orderId= those of an order
  GET    /_mock/withdrawals          every withdrawal
  PUT    /_mock/withdrawals/ID       {"status": "COMPLETED"}
  PUT    /_mock/results/OPERATION    answer with this result, such as one of gateway probe
  POST   /_mock/faults               {"operation": "balance", "times": 2, "fault": "refuse", "status": 503}
  DELETE /_mock/faults               inject no further fault
  POST   /_mock/reset                start again

The operations are create_invoice and those that gateway probe prints; a fault can be for any.
The default of times is 1, and -1 means all requests. Every fault takes retryAfter, too:
` + mock.Faults + `.`,
		Example: `  gateway mock --env >mock.env & gateway mock --wait && . ./mock.env
  gateway mock --addr :8090 --seed seed.json    # {"coins": [], "rates": [], "balances": [], "withdrawals": []}
  curl -d '{"operation": "create_invoice", "fault": "commit-then-drop"}' localhost:8090/_mock/faults
  curl -T balance.json localhost:8090/_mock/results/balance`,
	}
	var m mockFlags
	flags := c.Flags()
	flags.StringVar(&m.addr, "addr", "127.0.0.1:8090", "the `address` to listen on; port 0 is a free one")
	flags.StringVar(&m.key, "key", "test-key", "the API `key` that is accepted; never a real one, which other users could read here")
	flags.StringVar(&m.seed, "seed", "", "a JSON `file` with the data to start with; a list that it lacks has the usual data")
	flags.BoolVar(&m.empty, "empty", false, "start without any data")
	flags.BoolVar(&m.env, "env", false, "print the variables for a shell on stdout")
	flags.BoolVar(&m.wait, "wait", false, "serve nothing: wait until the mock at --addr responds, at most 10s without --timeout")
	c.MarkFlagsMutuallyExclusive("seed", "empty")
	return s.runs(c, 0, func(ctx context.Context, _ []string) error {
		if m.wait {
			return waitForMock(ctx, m.addr)
		}
		return s.serveMock(ctx, m)
	})
}

// serveMock serves a mock until ctx ends.
func (s *session) serveMock(ctx context.Context, flags mockFlags) error {
	seed, err := flags.data()
	if err != nil {
		return usage("the file of --seed: %w", err)
	}
	m, err := mock.New(flags.key, seed)
	if err != nil {
		return usage("--key: %w", err)
	}
	defer m.Close()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", flags.addr)
	if err != nil {
		return usage("the address of --addr cannot be used: %w", err)
	}
	// The variables are written before the first response, which --wait waits for.
	origin, variables := settings(listener.Addr(), flags.key)
	if flags.env {
		err = s.write(variables)
	}
	if err != nil {
		_ = listener.Close()
		return err
	}
	s.tell("A stand-in of the gateway, in memory: %s/gateway, and %s/_mock/ for tests. Ctrl-C ends it.", origin, origin)
	server := &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// data returns the data to start with.
func (f *mockFlags) data() (seed gatewaytest.Seed, err error) {
	text := []byte("{}")
	switch {
	case f.empty:
		text = []byte(`{"coins": [], "rates": [], "balances": [], "withdrawals": []}`)
	case f.seed != "":
		text, err = readFile(f.seed, maxSeed)
	}
	if err != nil {
		return seed, err
	}
	from := json.NewDecoder(bytes.NewReader(text))
	from.DisallowUnknownFields()
	return seed, from.Decode(&seed)
}

// settings returns the origin of a mock and the variables for a client on this machine, as a shell reads them.
func settings(addr net.Addr, key string) (origin, variables string) {
	host := addr.String()
	plain := "" // what the client needs for an address that other machines can have
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host = fmt.Sprintf("localhost:%d", tcp.Port)
	} else if ok && !tcp.IP.IsLoopback() {
		plain = "export " + envPlainHTTP + "=1\n"
	}
	origin = "http://" + host
	return origin, fmt.Sprintf("export %s='%s/gateway'\nexport %s='%s'\n", envBaseURL, origin, envAPIKey, strings.ReplaceAll(key, "'", `'\''`)) + plain
}

// waitForMock waits until a mock at an address responds.
func waitForMock(ctx context.Context, addr string) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, waitTimeout)
		defer cancel()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // without a proxy
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/_mock/withdrawals", nil)
		if err != nil {
			return usage("--addr is HOST:PORT, such as 127.0.0.1:8090")
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return errors.New("what responds at --addr is no mock: " + resp.Status)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no mock responds at --addr: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
