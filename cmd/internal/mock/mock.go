// Package mock serves a gatewaytest stand-in with a control API, so that programs in
// any language can be tested against it.
package mock

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/cryptogw/gateway/gatewaytest"
)

// A Scenario is what a mock starts with, and what a reset restores. Its JSON is that of the
// file of -scenario.
type Scenario struct {
	State    gatewaytest.Seed `json:"state"`
	Settings Settings         `json:"settings"`
	Faults   []Injection      `json:"faults"`
}

// Check returns what is wrong with the scenario, and what would be right.
func (s Scenario) Check() error {
	for _, i := range s.Faults {
		if err := i.inject(nil); err != nil {
			return fmt.Errorf("fault %.64q: %w", i.Fault, err)
		}
	}
	return s.Settings.Check()
}

// A Config is how a mock is served.
type Config struct {
	Key      string // random if it is empty
	Scenario Scenario
	Hosts    []string             // requests for a host that is none of them, an IP address or localhost are refused
	Options  []gatewaytest.Option // of the stand-in, besides its key and its data
}

// A Mock is a stand-in and its control API. It is safe for concurrent use.
type Mock struct {
	Config

	mux    *http.ServeMux
	routes []string

	mu       sync.Mutex // guards the fields below, and changes of the settings
	server   *gatewaytest.Server
	settings Settings
}

// New returns a mock. It panics if something is wrong with the scenario.
func New(c Config) *Mock {
	if err := c.Scenario.Check(); err != nil {
		panic("mock: " + err.Error())
	}
	m := &Mock{Config: c, mux: http.NewServeMux()}
	m.Hosts = append(slices.Clone(c.Hosts), "localhost")
	m.start()
	m.Key = m.server.APIKey // the same after every reset
	m.handle()
	return m
}

// start starts a stand-in in the initial state. The lock is held, or not yet needed.
func (m *Mock) start() {
	opts := append(slices.Clone(m.Options), gatewaytest.WithSeed(m.Scenario.State))
	if m.Key != "" {
		opts = append(opts, gatewaytest.WithAPIKey(m.Key))
	}
	m.server, m.settings = gatewaytest.NewMemoryServer(opts...), defaults().with(m.Scenario.Settings)
	_ = m.settings.apply(m.server) // New has checked them
	for _, i := range m.Scenario.Faults {
		_ = i.inject(m.server) // likewise
	}
}

// ServeHTTP implements [http.Handler]: the service under /gateway, and the control API
// under /_mock.
func (m *Mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if host := (&url.URL{Host: r.Host}).Hostname(); !m.serves(host) {
		writeError(w, &controlError{http.StatusMisdirectedRequest, fmt.Sprintf(
			"the mock does not serve host %.64q, but IP addresses, localhost and the names of the flags --addr and --host", host)})
		return
	}
	if strings.HasPrefix(r.URL.Path, "/_mock/") {
		m.mux.ServeHTTP(w, r)
		return
	}
	m.Server().Handler().ServeHTTP(w, r) // not through the mux, which would correct the path
}

// serves reports whether requests for a host are served. A page of another site whose name
// is made to resolve to this machine (DNS rebinding) has the same origin as the mock, and
// could read the journal. The host of its requests is that name, which is never an address.
func (m *Mock) serves(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || slices.ContainsFunc(m.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// Server returns the current stand-in.
func (m *Mock) Server() *gatewaytest.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server
}

// reset replaces the stand-in by one in the initial state. Requests that wait are
// dropped.
func (m *Mock) reset() {
	m.mu.Lock()
	old := m.server
	m.start()
	m.mu.Unlock()
	old.Close()
}

// Close ends requests that wait. The state stays readable.
func (m *Mock) Close() { m.Server().Close() }
