package gateway

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/go-retryablehttp"
)

// Version is the version of this library.
const Version = "0.1.0"

// Names of the operations, as they stand in errors.
const (
	opCoinNetworks        = "coin_networks"
	opCoinNetwork         = "coin_network"
	opCoinNetworkBySymbol = "coin_network_by_symbol"
	opExchangeRates       = "exchange_rates"
	opBalance             = "balance"
	opCreateInvoice       = "create_invoice"
	opWithdrawal          = "withdrawal"
)

// A Client calls the gateway. Make it with [New], once, and share it: it never
// changes and is safe for concurrent use. No way of printing it shows the key.
type Client struct {
	base   *url.URL
	key    secret
	cfg    *config
	budget *budget

	// The HTTP clients stand behind functions because the buffers of their
	// connections hold what was sent.
	reads, writes func() *http.Client
}

// New returns a client for the gateway at baseURL, such as
// "https://gateway.example/merchant"; the path, if there is one, stays in
// front of every route. It must be https, but for hosts on this machine or
// with [WithPlainHTTP].
//
// The key may be empty; calls that need one then fail before anything is sent.
// A bad argument or option is an [*ArgumentError].
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	base, reason := parseBase(baseURL, cfg.plainHTTP)
	if reason != "" {
		return nil, badOption("baseURL", reason)
	}
	if reason := checkKey(apiKey); reason != "" && apiKey != "" {
		return nil, badOption("apiKey", reason)
	}
	if cfg.http != nil {
		cfg.retry.AttemptTimeout = or(cfg.retry.AttemptTimeout, cfg.http.Timeout)
		cfg.retry.InvoiceTimeout = or(cfg.retry.InvoiceTimeout, cfg.http.Timeout)
	}
	cfg.retry = cfg.retry.withDefaults()
	reads := newHTTPClient(cfg.http, cfg.retry.AttemptTimeout, readIdle)
	writes := newHTTPClient(cfg.http, cfg.retry.InvoiceTimeout, writeIdle)
	cfg.http = nil
	return &Client{
		base:   base,
		key:    newSecret(apiKey),
		cfg:    cfg,
		budget: &budget{},
		reads:  func() *http.Client { return reads },
		writes: func() *http.Client { return writes },
	}, nil
}

// A call says what is particular to one request.
type call struct {
	op    string
	route string   // as INTERFACE.md writes it; each {name} is filled with an argument
	args  []string // for the route, in its order
	query []param  // those with an empty value are left out
	id    string   // the identifier that the record in the answer must have; empty for any
	key   keyPlace
	json  bool    // whether a read says that it is JSON
	write payload // what is posted; nil for a read
}

type param struct{ name, value string }

// A payload is the body of a write.
type payload interface {
	check() (name, reason string)
	order() string
	encode(key string) []byte
}

// A keyPlace is where the key goes: INTERFACE.md, "Authentication".
type keyPlace int

const (
	keyNowhere keyPlace = iota // not shown to be needed
	keyInHeader
	keyInBody
)

// do makes a call: the only way from a method to the wire and back.
func do[T any](ctx context.Context, c *Client, what call, read reader[T], opts []CallOption) (T, error) {
	var result, none T
	x, err := c.newRequest(ctx, what, opts)
	if err != nil {
		return none, err
	}
	x.open = func(d *decoder) (e envelope, refused bool) {
		result, e, refused = open(d, read)
		return e, refused
	}
	if err := c.send(x); err != nil {
		return none, err
	}
	return result, nil
}

// newRequest checks everything that a caller can get wrong, and builds the
// request.
func (c *Client) newRequest(ctx context.Context, what call, opts []CallOption) (*exchange, error) {
	refuse := func(name, reason string) (*exchange, error) {
		return nil, &ArgumentError{Op: what.op, Name: name, Reason: reason}
	}
	if c == nil || c.cfg == nil {
		return refuse("client", "was not made by New")
	}
	if ctx == nil {
		return refuse("ctx", "must not be nil")
	}
	cfg, refusal := newCallConfig(what.op, opts)
	if refusal != nil {
		return nil, refusal
	}
	target, name, reason := c.target(what)
	if reason == "" && what.write != nil {
		name, reason = what.write.check()
	}
	if reason != "" {
		return refuse(name, reason)
	}
	key, err := c.keyFor(what, cfg)
	if err != nil {
		return nil, err
	}
	x := &exchange{client: c, ctx: ctx, call: what, cfg: cfg, key: key}
	return x, x.build(target)
}

// keyFor returns the key of a call, which it must have where it is sent.
func (c *Client) keyFor(what call, cfg callConfig) (secret, error) {
	key := c.key
	if cfg.key != nil {
		key = *cfg.key
	}
	if what.key != keyNowhere && key.empty() {
		return key, &ArgumentError{
			Op: what.op, Name: "apiKey", err: ErrMissingAPIKey,
			Reason: "is required for this call: give it to New or WithCallAPIKey",
		}
	}
	return key, nil
}

// target builds the URL of a call.
func (c *Client) target(what call) (target *url.URL, name, reason string) {
	u := *c.base
	args := what.args
	for segment := range strings.SplitSeq(strings.TrimPrefix(what.route, "/"), "/") {
		escaped := segment
		if strings.HasPrefix(segment, "{") {
			escaped, segment, name, args = escape(args[0]), args[0], strings.Trim(segment, "{}"), args[1:]
			if reason := checkPathText(segment); reason != "" {
				return nil, name, reason
			}
		}
		u.Path += "/" + segment
		u.RawPath += "/" + escaped
	}
	for _, p := range what.query {
		if reason := checkText(p.value, maxPathText); reason != "" {
			return nil, p.name, reason
		}
		if p.value != "" {
			u.RawQuery += "&" + p.name + "=" + escape(p.value)
		}
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery, "&")
	return &u, "", ""
}

// escape escapes everything but the unreserved characters of RFC 3986.
func escape(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// send puts a request on the wire, as often as the retry policy says: the only
// place where the HTTP library's Do is called.
func (c *Client) send(x *exchange) error {
	if x.cfg.response != nil {
		*x.cfg.response = Response{}
	}
	if x.call.write != nil && c.cfg.guard != nil {
		return x.guarded(c.cfg.guard)
	}
	return x.run()
}

// library returns the retry loop of one call. It keeps nothing of the call: it
// asks the exchange what to do.
func (c *Client) library(x *exchange) *retryablehttp.Client {
	client := c.reads()
	if x.call.write != nil {
		client = c.writes()
	}
	return &retryablehttp.Client{
		HTTPClient:   client,
		RetryMax:     c.cfg.retry.MaxAttempts - 1,
		CheckRetry:   x.checkRetry,
		Backoff:      x.backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}
