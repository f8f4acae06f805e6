package gatewaytest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// An Operation is the name of an operation of the service. The Operation of a
// request to an unknown route is empty.
type Operation string

// The operations of the service.
const (
	// OpCoinNetworks is the listing, GET /api/networks-coins.
	OpCoinNetworks Operation = "coin_networks"
	// OpCoinNetwork is the lookup by identifier, GET /api/networks-coins/{id}.
	OpCoinNetwork Operation = "coin_network"
	// OpCoinNetworkBySymbol is the lookup by symbol and network,
	// GET /api/networks-coins/{coinSymbol}/{networkName}.
	OpCoinNetworkBySymbol Operation = "coin_network_by_symbol"
	// OpCoinNetworksOf is the lookup by symbol, GET /api/networks-coins/{coinSymbol},
	// when the catalog has a coin of that symbol; the same path is [OpCoinNetwork]
	// otherwise.
	OpCoinNetworksOf Operation = "coin_networks_of"
	// OpExchangeRates is GET /api/exchange-rate.
	OpExchangeRates Operation = "exchange_rates"
	// OpBalance is GET /api/balance/, with its slash.
	OpBalance Operation = "balance"
	// OpCreateInvoice is POST /api/invoice/create.
	OpCreateInvoice Operation = "create_invoice"
	// OpWithdrawal is GET /api/withdrawal/inquiry/{withdrawRequestId}.
	OpWithdrawal Operation = "withdrawal"

	// AnyOperation matches every request, including one to an unknown route.
	AnyOperation Operation = "any"
)

// A route is an operation of docs/interface.md, and how the server carries it out.
type route struct {
	op          Operation
	method      string
	pattern     string // behind /api/; {} stands for an argument
	status      int    // of a success
	keyInHeader bool   // whether the request needs a key in its header
	carryOut    func(*Server, *call) response
}

func routes() []route {
	return []route{
		{OpCoinNetworks, http.MethodGet, "networks-coins", http.StatusOK, false, (*Server).listing},
		{OpCoinNetwork, http.MethodGet, "networks-coins/{}", http.StatusOK, false, (*Server).lookup},
		{OpCoinNetworksOf, http.MethodGet, "networks-coins/{}", http.StatusOK, false, (*Server).lookup},
		{OpCoinNetworkBySymbol, http.MethodGet, "networks-coins/{}/{}", http.StatusOK, false, (*Server).lookup},
		{OpExchangeRates, http.MethodGet, "exchange-rate", http.StatusOK, false, (*Server).exchangeRates},
		{OpBalance, http.MethodGet, "balance/", http.StatusOK, true, (*Server).balance},
		{OpCreateInvoice, http.MethodPost, "invoice/create", http.StatusCreated, false, (*Server).createInvoice},
		{OpWithdrawal, http.MethodGet, "withdrawal/inquiry/{}", http.StatusCreated, true, (*Server).inquire},
	}
}

// route returns the route of an operation; none for [AnyOperation].
func (op Operation) route() (route, bool) {
	for _, r := range routes() {
		if r.op == op {
			return r, true
		}
	}
	return route{}, false
}

// maxBody is the largest request body that the server accepts, in bytes.
const maxBody = 64 << 10

// A call is one request and what the server has found out about it so far.
type call struct {
	route          // the zero one if there is none for the path
	args  []string // the path parameters, decoded
	r     *http.Request

	body    []byte
	readErr error // why the body is incomplete
	fields  object
	bodyErr string // why the body is not a JSON object
	keyIn   string
	keyOK   bool
}

// match determines the operation that a request is for: it compares the path with those of
// docs/interface.md, segment by segment. The segments are decoded one by one, so that an
// encoded slash stays data.
func (s *Server) match(r *http.Request) *call {
	segments := strings.Split(r.URL.EscapedPath(), "/")
	for i, segment := range segments {
		segments[i], _ = url.PathUnescape(segment) // EscapedPath is always well formed
	}
	for _, route := range routes() {
		args, ok := fits(strings.Split("/"+prefix+"/api/"+route.pattern, "/"), segments)
		if ok && (route.op != OpCoinNetwork || !s.isSymbol(args[0])) {
			return &call{route: route, args: args, r: r}
		}
	}
	return &call{r: r}
}

// fits reports whether the segments match the pattern, and returns the segments
// at its placeholders, {}.
func fits(pattern, segments []string) (args []string, ok bool) {
	if len(pattern) != len(segments) {
		return nil, false
	}
	for i, want := range pattern {
		switch {
		case want == "{}" && segments[i] != "":
			args = append(args, segments[i])
		case want != segments[i]:
			return nil, false
		}
	}
	return args, true
}

// readBody reads the body, up to one byte more than the server accepts.
func (c *call) readBody() {
	c.body, c.readErr = io.ReadAll(io.LimitReader(c.r.Body, maxBody+1))
	if c.op == OpCreateInvoice && len(c.body) <= maxBody {
		c.fields, c.bodyErr = parseObject(c.body)
	}
}

// carryOut carries an operation out and returns its response.
func (s *Server) carryOut(c *call) response {
	if c.op == "" {
		text := "no such route"
		if !strings.HasPrefix(c.r.URL.Path, "/"+prefix+"/") {
			text += ": the base URL has the path /" + prefix
		}
		return failure(http.StatusNotFound, text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	result, set := s.results[c.op]
	switch {
	case c.r.Method != c.method:
		resp := failure(http.StatusMethodNotAllowed, "method not allowed")
		resp.allow = c.method
		return resp
	case c.keyInHeader && c.keyIn == "":
		return failure(http.StatusUnauthorized, "x-api-key header is required")
	case c.keyInHeader && !c.keyOK:
		return failure(http.StatusUnauthorized, "x-api-key is not valid")
	case set && c.op != OpCreateInvoice:
		return response{status: c.status, message: successText, result: json.RawMessage(result)}
	}
	return c.route.carryOut(s, c)
}

func (s *Server) listing(c *call) response { return success(c.status, s.catalog) }

func (s *Server) exchangeRates(c *call) response { return success(c.status, s.rates) }
