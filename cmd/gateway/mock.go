package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway/cmd/gateway/internal/mock"
	"github.com/cryptogw/gateway/gatewaytest"
)

func mockCommand() command {
	return command{
		name: "mock", synopsis: "[flags]", local: true,
		short: "a stand-in of the gateway, for tests in any language",
		text: `Serves a stand-in of the gateway until Ctrl-C, with everything in memory, and prints then
what was asked and committed. The service is under /gateway. Under /_mock/ is an API for
tests: the journal, the invoices, faults, withdrawals, the clock and a reset; see
api/mock.yaml. A response that has something in it which is not documented has the
header X-Gatewaytest-Invented.

Requests are served for an IP address, localhost, the host of -addr and each name of -host,
and refused with 421 for any other: a page of another site could make its own name resolve
to this machine, and read the journal. Programs that reach the mock by the name of a
container need -host.

A fault is OPERATION:TIMES:NAME. The operations are coin_networks, coin_network,
coin_network_by_symbol, coin_networks_of, exchange_rates, balance, create_invoice, withdrawal and any.
TIMES is a number of requests, or all. The names are
` + wrapped(gatewaytest.FaultNames()) + `

  gateway mock
  gateway mock -env >mock.env & until [ -s mock.env ]; do sleep 0.1; done; . ./mock.env
  gateway mock -key test -fault create_invoice:1:commit-then-drop -fault balance:all:refuse=503
  gateway mock -addr :8090 -host mock    # for programs in other containers
  gateway mock -seed data.json    # {"coins": [], "rates": [], "balances": [], "withdrawals": []}`,
		define: func(flags *flag.FlagSet) action {
			var m mockFlags
			m.define(flags)
			return m.serve
		},
	}
}

// wrapped returns names, separated by commas, in lines of at most 88 characters.
func wrapped(names []string) string {
	text, column := "", 0
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		if column += len(name) + 1; column > 88 {
			text, column = strings.TrimSpace(text)+"\n", len(name)+1
		}
		text += name + " "
	}
	return strings.TrimSpace(text)
}

// mockFlags are the flags of `gateway mock`.
type mockFlags struct {
	addr, key string
	seed      gatewaytest.Seed
	faults    []mock.Injection
	hosts     []string
	env       bool
}

func (m *mockFlags) define(flags *flag.FlagSet) {
	flags.StringVar(&m.addr, "addr", "127.0.0.1:8090", "the `address` to listen on; port 0 is a free one")
	flags.Func("key", "the `key` that is accepted, not a real one (default random)", func(text string) (err error) {
		defer func() {
			if recover() != nil { // WithAPIKey panics, as the mistakes of a test do
				err = errors.New("it is 1 to 4,096 printable ASCII characters without a space")
			}
		}()
		gatewaytest.WithAPIKey(text)
		m.key = text
		return nil
	})
	flags.Func("seed", "a JSON `file` with data; what it lacks stays as it is without it", func(name string) (err error) {
		m.seed, err = readSeed(name)
		return withoutPath(err)
	})
	flags.Func("fault", "inject a `fault`; may be repeated", func(text string) error {
		i, err := mock.ParseInjection(text)
		m.faults = append(m.faults, i)
		return err
	})
	flags.Func("host", "serve requests for this `name` too, such as that of a container; may be repeated", func(name string) error {
		if name == "" || strings.ContainsAny(name, ":/") {
			return errors.New("it is a name without a port, such as mock")
		}
		m.hosts = append(m.hosts, name)
		return nil
	})
	flags.BoolVar(&m.env, "env", false, "print the settings for a shell on stdout")
}

// maxSeed is the largest seed file, in bytes.
const maxSeed = 16 << 20

// readSeed reads a seed file, which is one JSON object.
func readSeed(name string) (seed gatewaytest.Seed, err error) {
	file, err := os.Open(name) // #nosec G304 -- the user chooses the file
	if err != nil {
		return seed, err
	}
	defer func() { _ = file.Close() }()
	from := json.NewDecoder(io.LimitReader(file, maxSeed))
	from.DisallowUnknownFields()
	if err := from.Decode(&seed); err != nil {
		return seed, err
	}
	if _, err := from.Token(); err != io.EOF {
		return seed, errors.New("there is more after the end of the object, or more than 16 MiB")
	}
	return seed, nil
}

// serve serves the mock until ctx ends.
func (m *mockFlags) serve(ctx context.Context, s *session) error {
	host, port, err := net.SplitHostPort(m.addr)
	if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
		return usage(mockCommand(), "-addr is HOST:PORT with a number as port, such as 127.0.0.1:8090, or :8090 for every address of this machine")
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", m.addr)
	if err != nil {
		return fmt.Errorf("the address of -addr cannot be used: %w", withoutHost(err, host))
	}
	// Not "", which would be the host of a request that has none.
	standIn := mock.New(m.key, m.seed, m.faults, append(m.hosts, cmp.Or(host, "localhost"))...)
	server := &http.Server{
		Handler: standIn, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	err = m.announce(s, listener.Addr(), standIn.Server().APIKey)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-served:
		}
	}
	standIn.Close()
	_ = server.Close()
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.err, summary(standIn.Server()))
	return err
}

// announce prints the banner on stderr and, with -env, the settings on stdout.
func (m *mockFlags) announce(s *session, addr net.Addr, key string) error {
	host, local := reachable(addr)
	settings := [][2]string{{envBaseURL, "http://" + host + "/gateway"}, {envAPIKey, key}}
	if !local {
		settings = append(settings, [2]string{envPlainHTTP, "1"})
	}
	shown := key
	if m.key != "" {
		shown = "that of -key"
	}
	banner := fmt.Sprintf(`A stand-in of the gateway, in memory. Ctrl-C ends it.
  base URL     %s
  key          %s
  control API  http://%s/_mock/ (api/mock.yaml)
Documented: methods and paths, where the key travels, the envelope, the records of the listing
and of the inquiry. Invented: all data, the status and text of errors, the bodies of lookups, rates,
balance and invoices. A response with an invention has the header %s.
`, settings[0][1], shown, host, gatewaytest.InventedHeader)
	if !local {
		banner += "Other machines can reach this address; by a name only with -host.\n"
	}
	if _, err := io.WriteString(s.err, banner); err != nil {
		return err
	}
	if !m.env {
		return nil
	}
	text := ""
	for _, setting := range settings {
		text += fmt.Sprintf("export %s='%s'\n", setting[0], strings.ReplaceAll(setting[1], "'", `'\''`))
	}
	return s.write(text)
}

// reachable returns a host and port by which this machine reaches an address, and
// whether only this machine does.
func reachable(addr net.Addr) (host string, local bool) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String(), ok && tcp.IP.IsLoopback()
	}
	return fmt.Sprintf("localhost:%d", tcp.Port), false
}

// summary returns what was asked of a stand-in and what it committed.
func summary(gw *gatewaytest.Server) string {
	type counts struct{ all, done, faults int }
	asked, names := map[string]*counts{}, []string{}
	for _, r := range gw.Requests() {
		name := cmp.Or(string(r.Operation), "unknown route")
		if asked[name] == nil {
			asked[name], names = &counts{}, append(names, name)
		}
		asked[name].all++
		if r.Status >= 200 && r.Status <= 299 {
			asked[name].done++
		}
		if r.Fault != "" {
			asked[name].faults++
		}
	}
	text := fmt.Sprintf("\nRequests: %d\n", len(gw.Requests()))
	for _, name := range names {
		n := asked[name]
		text += fmt.Sprintf("  %s: %d, of which %d had a success and %d met a fault\n", name, n.all, n.done, n.faults)
	}
	invoices := gw.Invoices()
	text += fmt.Sprintf("Invoices committed: %d\n", len(invoices))
	orders := map[string]int{}
	for _, i := range invoices {
		if orders[i.OrderID]++; orders[i.OrderID] == 1 {
			text += fmt.Sprintf("  %s: %d\n", printable(i.OrderID), len(gw.InvoicesFor(i.OrderID)))
		}
	}
	return text
}
