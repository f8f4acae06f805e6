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

// known reports whether an operation is one of the constants.
func (op Operation) known() bool {
	switch op {
	case OpCoinNetworks, OpCoinNetwork, OpCoinNetworkBySymbol, OpCoinNetworksOf, OpExchangeRates, OpBalance, OpCreateInvoice,
		OpWithdrawal, AnyOperation:
		return true
	}
	return false
}

// maxBody is the largest request body that the server accepts, in bytes.
const maxBody = 64 << 10

// A call is one request and what the server has found out about it so far.
type call struct {
	op   Operation
	args []string // the path parameters, decoded
	r    *http.Request

	body    []byte
	readErr error // why the body is incomplete
	fields  object
	bodyErr string // why the body is not a JSON object
	keyIn   string
	keyOK   bool
}

// route determines the operation that a request is for.
func (s *Server) route(r *http.Request) *call {
	c := &call{r: r}
	c.op, c.args = match(r.URL.EscapedPath())
	if c.op == OpCoinNetwork && s.isSymbol(c.args[0]) {
		c.op = OpCoinNetworksOf
	}
	return c
}

// match compares a path with those of docs/interface.md, segment by segment. The
// segments are decoded one by one, so that an encoded slash stays data.
func match(path string) (Operation, []string) {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i], _ = url.PathUnescape(segment) // EscapedPath is always well formed
	}
	for _, route := range []struct {
		pattern string
		op      Operation
	}{
		{"networks-coins", OpCoinNetworks},
		{"networks-coins/{}", OpCoinNetwork},
		{"networks-coins/{}/{}", OpCoinNetworkBySymbol},
		{"exchange-rate", OpExchangeRates},
		{"balance/", OpBalance},
		{"invoice/create", OpCreateInvoice},
		{"withdrawal/inquiry/{}", OpWithdrawal},
	} {
		if args, ok := fits(strings.Split("/"+prefix+"/api/"+route.pattern, "/"), segments); ok {
			return route.op, args
		}
	}
	return "", nil
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
	method := http.MethodGet
	if c.op == OpCreateInvoice {
		method = http.MethodPost
	}
	if c.r.Method != method {
		resp := failure(http.StatusMethodNotAllowed, "method not allowed")
		resp.allow = method
		return resp
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.op == OpCreateInvoice {
		return s.createInvoice(c)
	}
	if refusal, refused := c.refuseHeaderKey(); refused {
		return refusal
	}
	if result, ok := s.results[c.op]; ok {
		return response{status: c.op.status(), message: successText, result: json.RawMessage(result)}
	}
	switch c.op {
	case OpCoinNetworks:
		return success(c.op, s.catalog)
	case OpExchangeRates:
		return success(c.op, s.rates)
	case OpBalance:
		return s.balance(c)
	case OpWithdrawal:
		return s.inquire(c)
	default:
		return s.lookup(c)
	}
}

// status is the status of a success: 201 is documented for the withdrawal inquiry.
func (op Operation) status() int {
	if op == OpWithdrawal || op == OpCreateInvoice {
		return http.StatusCreated
	}
	return http.StatusOK
}

// refuseHeaderKey returns the refusal of a request that needs a key in its header and
// has none or a wrong one.
func (c *call) refuseHeaderKey() (resp response, refused bool) {
	switch {
	case c.op != OpBalance && c.op != OpWithdrawal:
		return response{}, false
	case c.keyIn == "":
		return failure(http.StatusUnauthorized, "x-api-key header is required"), true
	case !c.keyOK:
		return failure(http.StatusUnauthorized, "x-api-key is not valid"), true
	}
	return response{}, false
}
