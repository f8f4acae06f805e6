package gatewaytest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

// An Option changes how [NewServer] and [NewMemoryServer] start a server. If an option
// is repeated, the last one wins.
type Option func(*config)

type config struct {
	addr    string
	key     string
	seed    Seed
	history int
	strict  bool
	profile Profile
	random  *rand.Rand
	log     func(Request)
}

func newConfig(opts []Option) config {
	c := config{
		addr: "127.0.0.1:0", key: newKey(), history: historyLimit,
		random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), // #nosec G404 -- latencies and faults
	}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

// WithAddr makes [NewServer] listen on a TCP address of the form host:port, instead of
// a free port of 127.0.0.1. Whoever can reach the address can use the server.
func WithAddr(addr string) Option {
	return func(c *config) { c.addr = addr }
}

// WithAPIKey sets the key that the server accepts, instead of a random one. The option
// panics unless the key is 1 to 4,096 printable ASCII characters without a space, which
// any client can send. Do not use a real key.
func WithAPIKey(key string) Option {
	if key == "" || len(key) > 4096 || strings.ContainsFunc(key, func(char rune) bool { return char <= ' ' || char > '~' }) {
		panic("gatewaytest: WithAPIKey wants 1 to 4,096 printable ASCII characters without a space")
	}
	return func(c *config) { c.key = key }
}

// Handler returns the server as an [http.Handler], to be part of a server of the
// caller's, under the path /gateway. Both have the same state. [Server.Close] ends
// requests that wait, but does not close the connections of the caller's server.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// InventedHeader is the header of every response that has an invention in it (see the
// package documentation), with the names of the inventions: the [Shape] of the result,
// "error/" and the status of a refusal, "fault/" and the name of the [Fault] (at most 80 characters), or
// "repeated/" and the name of [RepeatedOrders]. The data are invented in all responses.
const InventedHeader = "X-Gatewaytest-Invented"

// markInvented adds the names of what is invented in a response.
func markInvented(header http.Header, resp response, fault Fault) {
	if fault.name != "" {
		header.Add(InventedHeader, fmt.Sprintf("fault/%.80s", fault.name))
	}
	for _, name := range resp.invented {
		header.Add(InventedHeader, name)
	}
}

func inventedError(status int) string { return fmt.Sprintf("error/%d", status) }
