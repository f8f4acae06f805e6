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

// A Mock is a stand-in and its control API. It is safe for concurrent use.
type Mock struct {
	key    string
	seed   gatewaytest.Seed
	faults []Injection
	hosts  []string // its names
	mux    *http.ServeMux

	mu     sync.Mutex // guards server
	server *gatewaytest.Server
}

// New returns a mock with a key, data and faults. The key is random if it is empty. Requests
// for a host that is neither an IP address, localhost nor one of hosts are refused. New
// panics if a fault is not one that [ParseInjection] returns.
func New(key string, seed gatewaytest.Seed, faults []Injection, hosts ...string) *Mock {
	for _, i := range faults {
		if _, err := i.fault(); err != nil {
			panic("mock: " + err.Error())
		}
	}
	m := &Mock{key: key, seed: seed, faults: faults, hosts: append(hosts, "localhost"), mux: http.NewServeMux()}
	m.server = m.start()
	m.key = m.server.APIKey // the same after every reset
	m.routes()
	return m
}

// start returns a stand-in in the initial state.
func (m *Mock) start() *gatewaytest.Server {
	opts := []gatewaytest.Option{gatewaytest.WithSeed(m.seed)}
	if m.key != "" {
		opts = append(opts, gatewaytest.WithAPIKey(m.key))
	}
	server := gatewaytest.NewMemoryServer(opts...)
	for _, i := range m.faults {
		_ = inject(server, i) // New has checked it
	}
	return server
}

func inject(server *gatewaytest.Server, i Injection) error {
	fault, err := i.fault()
	if err == nil {
		server.InjectFault(i.Operation, i.Times, fault)
	}
	return err
}

// ServeHTTP implements [http.Handler]: the service under /gateway, and the control API
// under /_mock.
func (m *Mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if host := (&url.URL{Host: r.Host}).Hostname(); !m.serves(host) {
		writeError(w, &controlError{http.StatusMisdirectedRequest, fmt.Sprintf(
			"the mock does not serve host %.64q, but IP addresses, localhost and the names of the flags -addr and -host", host)})
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
	return err == nil || slices.ContainsFunc(m.hosts, func(name string) bool { return strings.EqualFold(name, host) })
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
	m.server = m.start()
	m.mu.Unlock()
	old.Close()
}

// Close ends requests that wait. The state stays readable.
func (m *Mock) Close() { m.Server().Close() }
