package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cryptogw/gateway/cmd/internal/mock"
	"github.com/cryptogw/gateway/gatewaytest"
)

func (s *session) mockCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "mock", Short: "Serve a stand-in of the gateway, for tests in any language", Args: cobra.NoArgs,
		Long: `Serves a stand-in of the gateway until Ctrl-C, with everything in memory, and prints then
what was asked and committed. The service is under /gateway. Under /_mock/ is an API for
tests: the journal, the invoices, faults, settings, the data, the clock and a reset; GET
/_mock/ lists it. A response that has something in it
which is not documented has the header X-Gatewaytest-Invented. Of the journal and of the
invoices 128 MiB each are kept, and the oldest dropped.

Requests are served for an IP address, localhost, the host of --addr and each name of --host,
and refused with 421 for any other: a page of another site could make its own name resolve
to this machine, and read the journal. Programs that reach the mock by the name of a
container need --host.

A fault is OPERATION:TIMES:NAME. The operations are coin_networks, coin_network,
coin_network_by_symbol, coin_networks_of, exchange_rates, balance, create_invoice, withdrawal and any.
TIMES is a number of requests, all, a share such as 5%, or a duration such as 30s. The names are
` + wrapped(gatewaytest.FaultNames()) + `

An order asks for a fault by itself: the first request of order mock-commit-then-drop-17
is committed and loses its response, and that of mock-refuse=503-17 is refused.

With --tls, --env also prints SSL_CERT_FILE and NODE_EXTRA_CA_CERTS. Programs that read the
first trust no other authority in that shell.`,
		Example: `  gateway mock --env >mock.env & gateway mock --wait && . ./mock.env
  gateway mock --key test --fault create_invoice:1:commit-then-drop --fault balance:all:refuse=503
  gateway mock --fault any:30s:page=530 --fault coin_networks:all:edit=/result/DOGE/maxWithdraw=null
  gateway mock --addr :8090 --host mock    # for programs in other containers
  gateway mock --repeated refused --limit 10/1s --latency 20ms-80ms,1%:2s -v
  gateway mock --scenario evening.json    # {"state": {"rates": []}, "settings": {"repeatedOrders": "same"}, "faults": []}
  curl localhost:8090/_mock/state >data.json; gateway mock --seed data.json`,
	}
	var m mockFlags
	m.define(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFlags(c.Flags()); err != nil {
			return err
		}
		s.started = true
		host, port, err := net.SplitHostPort(m.addr)
		if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
			return usage("--addr is HOST:PORT with a number as port, such as 127.0.0.1:8090, or :8090 for every address of this machine")
		}
		if m.caFile != "" && !m.tls {
			return usage("--tls-ca is for --tls")
		}
		if m.wait {
			return m.waitFor(c.Context(), net.JoinHostPort(cmp.Or(host, "localhost"), port))
		}
		return m.run(c.Context(), s, host)
	}
	return c
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
	addr     string
	config   mock.Config // without the scenario
	scenario mock.Scenario
	seed     *gatewaytest.Seed // in the place of the scenario's state
	faults   []mock.Injection  // after those of the scenario
	settings mock.Settings     // before those of the scenario
	strict   bool
	tls      bool
	caFile   string
	env      bool
	wait     bool
	timeout  time.Duration
	verbose  bool
}

func (m *mockFlags) define(flags *pflag.FlagSet) {
	m.defineServer(flags)
	m.defineFiles(flags)
	m.setting(flags, "shape", "respond in this `shape`, such as invoice/payable; may be repeated", func(s *mock.Settings, text string) { s.Shapes = []string{text} })
	m.setting(flags, "repeated", "what a repeated order gets: `again`, same or refused (default again)", func(s *mock.Settings, text string) { s.RepeatedOrders = text })
	m.setting(flags, "limit", "the `requests` in a window, such as 10/1s; the others get 429", func(s *mock.Settings, text string) { s.RateLimit = text })
	m.setting(flags, "latency", "how `long` a response waits: 50ms, 20ms-80ms or 20ms-80ms,1%:2s", func(s *mock.Settings, text string) { s.Latency = text })
	flags.BoolVar(&m.strict, "strict", false, "refuse members and parameters that are not documented")
	flags.Func("fault", "inject a `fault`; may be repeated", func(text string) error {
		i, err := mock.ParseInjection(text)
		m.faults = append(m.faults, i)
		return err
	})
	flags.BoolVar(&m.env, "env", false, "print the settings for a shell on stdout")
	flags.BoolVarP(&m.verbose, "verbose", "v", false, "print each request on stderr")
	flags.BoolVar(&m.wait, "wait", false, "serve nothing: wait until the mock at --addr responds")
	flags.DurationVar(&m.timeout, "timeout", 10*time.Second, "how `long` --wait waits")
}

// defineServer defines the flags about where and to whom the mock is served.
func (m *mockFlags) defineServer(flags *pflag.FlagSet) {
	flags.StringVar(&m.addr, "addr", "127.0.0.1:8090", "the `address` to listen on; port 0 is a free one")
	flags.Func("key", "the `key` that is accepted, not a real one (default random)", func(text string) (err error) {
		defer func() {
			if recover() != nil { // WithAPIKey panics, as the mistakes of a test do
				err = errors.New("it is 1 to 4,096 printable ASCII characters without a space")
			}
		}()
		gatewaytest.WithAPIKey(text)
		m.config.Key = text
		return nil
	})
	flags.Func("host", "serve requests for this `name` too, such as that of a container; may be repeated", func(name string) error {
		if name == "" || strings.ContainsAny(name, ":/") {
			return errors.New("it is a name without a port, such as mock")
		}
		m.config.Hosts = append(m.config.Hosts, name)
		return nil
	})
	flags.BoolVar(&m.tls, "tls", false, "serve HTTPS, with a certificate of an authority that is made at the start")
	flags.StringVar(&m.caFile, "tls-ca", "", "the `file` that the certificate of that authority is written to (default a temporary one)")
}

// defineFiles defines the flags that name files with what the mock starts with.
func (m *mockFlags) defineFiles(flags *pflag.FlagSet) {
	flags.Func("scenario", "a JSON `file` with state, settings and faults to start with", func(name string) (err error) {
		m.scenario, err = readJSON[mock.Scenario](name)
		return cmp.Or(withoutPath(err), m.scenario.Check())
	})
	flags.Func("seed", "a JSON `file` with the state alone; what it lacks stays as it is without it", func(name string) error {
		seed, err := readJSON[gatewaytest.Seed](name)
		m.seed = &seed
		return withoutPath(err)
	})
}

// setting defines a flag that changes the settings, those of a scenario too.
func (m *mockFlags) setting(flags *pflag.FlagSet, name, usage string, set func(*mock.Settings, string)) {
	flags.Func(name, usage, func(text string) error {
		var one mock.Settings
		set(&one, text)
		if err := one.Check(); err != nil {
			return err
		}
		one.Shapes = append(m.settings.Shapes, one.Shapes...)
		set(&m.settings, text)
		m.settings.Shapes = one.Shapes
		return nil
	})
}

// readJSON reads a file of the user's, which is one JSON object.
func readJSON[T any](name string) (value T, err error) {
	file, err := os.Open(name) // #nosec G304 -- the user chooses the file
	if err != nil {
		return value, err
	}
	defer func() { _ = file.Close() }()
	from := json.NewDecoder(io.LimitReader(file, mock.MaxFile))
	from.DisallowUnknownFields()
	if err := from.Decode(&value); err != nil {
		return value, err
	}
	if _, err := from.Token(); err != io.EOF {
		return value, errors.New("there is more after the end of the object, or more than 16 MiB")
	}
	return value, nil
}

// start returns the mock, which serves the names of --addr and --host.
func (m *mockFlags) start(s *session, host string) *mock.Mock {
	c := m.config
	c.Hosts = append(slices.Clone(c.Hosts), cmp.Or(host, "localhost")) // not "", which would be the host of a request that has none
	c.Scenario = mock.Scenario{
		State: m.scenario.State, Settings: mergedSettings(m.scenario.Settings, m.settings), Faults: append(slices.Clone(m.scenario.Faults), m.faults...),
	}
	if m.seed != nil {
		c.Scenario.State = *m.seed
	}
	if m.strict {
		c.Options = append(c.Options, gatewaytest.WithStrict())
	}
	if m.verbose {
		var mu sync.Mutex
		c.Options = append(c.Options, gatewaytest.WithRequestLog(func(r gatewaytest.Request) {
			mu.Lock()
			defer mu.Unlock()
			_, _ = io.WriteString(s.err, logLine(r)) // a log that is closed does not end the mock
		}))
	}
	return mock.New(c)
}

// mergedSettings returns settings, with those of the flags before them.
func mergedSettings(of, flags mock.Settings) mock.Settings {
	return mock.Settings{
		Shapes:         append(slices.Clone(of.Shapes), flags.Shapes...),
		RepeatedOrders: cmp.Or(flags.RepeatedOrders, of.RepeatedOrders),
		RateLimit:      cmp.Or(flags.RateLimit, of.RateLimit),
		Latency:        cmp.Or(flags.Latency, of.Latency),
	}
}

// logLine returns the line about a request, which has no key in it.
func logLine(r gatewaytest.Request) string {
	status := "no response"
	if r.Status != 0 {
		status = strconv.Itoa(r.Status)
	}
	text := fmt.Sprintf("%s %s %s: %s", r.At.Format("15:04:05.000"), printable(r.Method), printable(r.Target), status)
	var body struct{ OrderID string }
	if r.Operation == gatewaytest.OpCreateInvoice && json.Unmarshal(r.Body, &body) == nil && body.OrderID != "" {
		text += ", order " + printable(body.OrderID)
	}
	if r.Fault != "" {
		text += ", fault " + r.Fault
	}
	return text + "\n"
}

// run serves the mock until ctx ends.
func (m *mockFlags) run(ctx context.Context, s *session, host string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", m.addr)
	if err != nil {
		return fmt.Errorf("the address of --addr cannot be used: %w", withoutPath(err))
	}
	standIn := m.start(s, host)
	defer standIn.Close()
	if m.tls {
		authority, err := newAuthority(standIn.Hosts, listener.Addr(), m.caFile)
		if err != nil {
			_ = listener.Close()
			return err
		}
		defer authority.remove()
		m.caFile = authority.file
		listener = tls.NewListener(listener, authority.config)
	}
	return m.serve(ctx, s, listener, standIn)
}

// serve serves a mock on a listener until ctx ends.
func (m *mockFlags) serve(ctx context.Context, s *session, listener net.Listener, standIn *mock.Mock) error {
	server := &http.Server{
		Handler: standIn, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	// The settings are written before the first response, for those who --wait for it.
	if err := m.announce(s, listener.Addr(), standIn.Server().APIKey); err != nil {
		_ = listener.Close()
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	standIn.Close()
	_ = server.Close()
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.err, summary(standIn.Server()))
	return err
}

// announce prints the banner on stderr and, with --env, the settings on stdout.
func (m *mockFlags) announce(s *session, addr net.Addr, key string) error {
	host, local := reachable(addr)
	origin := "http://" + host
	if m.tls {
		origin = "https://" + host
	}
	settings := [][2]string{{envBaseURL, origin + "/gateway"}, {envAPIKey, key}}
	switch {
	case m.tls:
		settings = append(settings, [2]string{"SSL_CERT_FILE", m.caFile}, [2]string{"NODE_EXTRA_CA_CERTS", m.caFile})
	case !local:
		settings = append(settings, [2]string{envPlainHTTP, "1"})
	}
	shown := key
	if m.config.Key != "" {
		shown = "that of --key"
	}
	banner := fmt.Sprintf(`A stand-in of the gateway, in memory. Ctrl-C ends it.
  base URL     %s
  key          %s
  control API  %s/_mock/
Documented: methods and paths, where the key travels, the envelope, the records of the listing
and of the inquiry. Invented: all data, the status and text of errors, the bodies of lookups, rates,
balance and invoices. A response with an invention has the header %s.
`, settings[0][1], shown, origin, gatewaytest.InventedHeader)
	if m.tls {
		banner += "Its authority is in " + m.caFile + ".\n"
	}
	if !local {
		banner += "Other machines can reach this address; by a name only with --host.\n"
	}
	if _, err := io.WriteString(s.err, banner); err != nil {
		return err
	}
	if !m.env {
		return nil
	}
	return s.write(exports(settings))
}

// exports returns what sets variables in a shell.
func exports(settings [][2]string) (text string) {
	for _, setting := range settings {
		text += fmt.Sprintf("export %s='%s'\n", setting[0], strings.ReplaceAll(setting[1], "'", `'\''`))
	}
	return text
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
	asked, names, journal := map[string]*counts{}, []string{}, gw.Requests()
	for _, r := range journal {
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
	droppedRequests, droppedInvoices := gw.Dropped()
	text := "\n" + counted("Requests", len(journal), droppedRequests)
	for _, name := range names {
		n := asked[name]
		text += fmt.Sprintf("  %s: %d, of which %d had a success and %d met a fault\n", name, n.all, n.done, n.faults)
	}
	invoices := gw.Invoices()
	text += counted("Invoices committed", len(invoices), droppedInvoices)
	orders, of := []string{}, map[string]int{}
	for _, i := range invoices {
		if of[i.OrderID]++; of[i.OrderID] == 1 {
			orders = append(orders, i.OrderID)
		}
	}
	for _, order := range orders[:min(len(orders), maxSummary)] {
		text += fmt.Sprintf("  %s: %d\n", printable(order), of[order])
	}
	if more := len(orders) - maxSummary; more > 0 {
		text += fmt.Sprintf("  and %d more orders\n", more)
	}
	return text
}

// maxSummary is the largest number of orders in the summary.
const maxSummary = 1000

// counted returns a line with how many there are, with those that are no longer kept.
func counted(what string, kept, dropped int) string {
	if dropped > 0 {
		return fmt.Sprintf("%s: %d, of which the last %d are kept\n", what, kept+dropped, kept)
	}
	return fmt.Sprintf("%s: %d\n", what, kept)
}
