package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cryptogw/gateway/cmd/internal/mock"
)

func (s *session) mockCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "mock", Short: "Serve a stand-in of the gateway, for tests in any language", Args: cobra.NoArgs,
		Long: `Serves a stand-in of the gateway until Ctrl-C, with everything in memory. When it is ready it
prints the variables for a shell. The gateway is under /gateway. Tests read and change it
under /_mock/:

  GET    /_mock/requests             every request, without the key
  GET    /_mock/invoices             every invoice; with ?orderId= those of an order
  GET    /_mock/withdrawals          every withdrawal
  PUT    /_mock/withdrawals/ID       {"status": "COMPLETED"}
  PUT    /_mock/results/OPERATION    answer with this result, such as one of gateway probe
  PUT    /_mock/rates/BTC            {"usd": "64000", "eur": "59000"}; without both the coin has no rate
  PUT    /_mock/repeated-orders      {"kind": "same"}: of an order that has an invoice, send that one;
                                     again: create another; refused: respond with 409
  PUT    /_mock/rate-limit           {"requests": 100, "seconds": 60}; 0 requests for no limit
  POST   /_mock/clock                {"seconds": 86400}: move the clock forward
  POST   /_mock/faults               {"operation": "balance", "times": 2, "fault": "refuse", "status": 503}
  DELETE /_mock/faults               inject no further fault
  POST   /_mock/reset                start again

The operations are create_invoice and those that gateway probe prints; a fault can be for any.
The default of times is 1, and -1 means all requests. Every fault takes retryAfter, too:
` + mock.Faults + `.`,
		Example: `  gateway mock
  curl -d '{"operation": "create_invoice", "fault": "commit-then-drop"}' localhost:8090/_mock/faults
  curl -T balance.json localhost:8090/_mock/results/balance`,
	}
	addr := c.Flags().String("addr", "127.0.0.1:8090", "the `host:port` to listen on; port 0 is a free one")
	return s.runs(c, 0, func(ctx context.Context, _ []string) error { return s.serveMock(ctx, *addr) })
}

func (s *session) serveMock(ctx context.Context, addr string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return usage("the address of --addr cannot be used: %w", err)
	}
	defer func() { _ = listener.Close() }()
	origin := "http://" + strings.Replace(listener.Addr().String(), "[::]", "localhost", 1) // of :8090
	if err := s.write(fmt.Sprintf("export %s=%s/gateway\nexport %s=%s\n", envBaseURL, origin, envAPIKey, mock.Key)); err != nil {
		return err
	}
	s.tell("A stand-in of the gateway, in memory: %s/gateway, and %s/_mock/ for tests. Ctrl-C ends it.", origin, origin)
	m := mock.New()
	defer m.Close()
	server := &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
