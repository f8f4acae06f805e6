// Package gateway is a client for a cryptocurrency payment gateway: coins and
// networks, exchange rates, balance, invoices and the inquiry of withdrawals.
//
// A [Client] has a method for each endpoint of the service.
//
//	client, err := gateway.New("https://gateway.example", apiKey)
//	...
//	invoice, err := client.CreateInvoice(ctx, gateway.InvoiceRequest{
//		OrderID: "A-17",
//		Price:   decimal.RequireFromString("10.50"),
//		Amount:  decimal.RequireFromString("10.50"),
//	})
//
// # Money
//
// Amounts are exact, never a float. An amount that is missing, null or malformed is an error
// that names its place, never zero.
//
// [Client.CreateInvoice] sends at most one invoice, and the client's [OrderGuard] remembers the
// order, by default in memory: the same call again returns the same invoice. When it fails, [OutcomeOf] reports what is
// known of the order: [OutcomeNotSent], [OutcomeRejected], [OutcomeConflict] or [OutcomeUnknown].
// An invoice of unknown outcome may exist: call again if [SafeToRetry] is true, otherwise look it
// up before anything else.
//
// # Errors
//
// A call returns an [*ArgumentError] (refused here, nothing sent), an [*APIError] (an error
// response), a [*DecodeError] (a response that cannot be decoded), a [*TransportError] (no
// usable response), and for an invoice an [*OutcomeUnknownError] or an [*OrderConflictError].
// A wait that does not end with COMPLETED is a [*WaitError].
//
// # Retries
//
// A read makes several attempts, as [RetryPolicy] says: after a connection that was refused, reset,
// cut or timed out, a name server that did not respond, a body that was cut or damaged, and the
// statuses 408, 425, 429, 500, 502 to 504, 520 to 524 and 529. All retries of a client share a
// budget, which successful calls refill. An invoice is retried only if it is proved that nothing
// of it was sent, or with [WithIdempotentOrders].
//
// # The key
//
// No way of printing a client, an option, a result or an error shows the key. Where a response
// repeats a key of 8 characters or more, [REDACTED] replaces it.
//
// # Undocumented responses
//
// The service is documented in part, as docs/interface.md of the repository says. What is documented is typed.
// Rates and balances are not: they are read in a few forms, or by the functions of [WithRatesDecoder] and
// [WithBalanceDecoder], and kept in a field Raw. An invoice has its Raw, and the Details that the function of
// [WithInvoiceDecoder] reads. [WithResponse] returns the envelope of any response.
// Records of a list that cannot be read are skipped: see [Skipped].
//
// Package [github.com/cryptogw/gateway/pricing] has what can be paid, in what and how much, and
// package [github.com/cryptogw/gateway/gatewaytest] a gateway to test against.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
)

// Version is the version of this library: its tag without the v. The default
// User-Agent has it.
const Version = "0.1.0"

const maxBody = 8 << 20 // of a response below 400

// A Client calls the gateway. It is made by [New] and safe for concurrent use. Only [Client.Shutdown] changes it.
type Client struct {
	base      endpoint.Base
	key       redact.Secret
	redactor  redact.Redactor // of the client's own key
	cfg       *config
	observers []Observer
	request   *http.Request // all that requests have in common
	retrier   *attempt.Retrier
	orders    *ordersInFlight

	// Functions, so that a dump by reflection reaches neither transports, which may hold
	// credentials, nor pooled buffers.
	http  func() *http.Client
	trees func() *sync.Pool // of *doc.Doc
}

// New returns a client for the gateway at baseURL, such as
// "https://gateway.example/merchant"; its path, if it has one, stays in front of
// every route. It must be https, except for a loopback host or with [WithPlainHTTP].
//
// The key is 1 to 4,096 printable ASCII characters, and empty with [WithAPIKeySource] or [WithoutAPIKey].
// A bad argument or option is an [*ArgumentError]; so is an [OrderGuard] with a method
// Lease() time.Duration whose lease is not longer than an invoice may take by [RetryPolicy]; 0 is a lease that
// never ends.
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	base, reason := endpoint.Parse(baseURL)
	if reason == "" && base.Cleartext() && !cfg.plainHTTP {
		reason = "must begin with https://: plain http is for this machine only, or with WithPlainHTTP"
	}
	if reason != "" {
		return nil, badOption("baseURL", reason)
	}
	if reason := cfg.checkKey(apiKey); reason != "" {
		return nil, badOption("apiKey", reason)
	}
	if cfg.http != nil {
		cfg.retry.AttemptTimeout = cmp.Or(cfg.retry.AttemptTimeout, cfg.http.Timeout)
		cfg.retry.InvoiceTimeout = cmp.Or(cfg.retry.InvoiceTimeout, cfg.http.Timeout)
	}
	cfg.retry = cfg.retry.withDefaults()
	if reason := cfg.checkLease(); reason != "" {
		return nil, badOption("WithOrderGuard", reason)
	}
	transport, err := cfg.transport()
	if err != nil {
		return nil, err
	}
	return newClient(base, redact.NewSecret(apiKey), cfg, transport), nil
}

// checkKey returns what is wrong with the key of a client, or "".
func (cfg *config) checkKey(key string) string {
	switch {
	case key == "" && cfg.keySource == nil && !cfg.keyless:
		return "is required; a client without a key of its own needs WithAPIKeySource or WithoutAPIKey"
	case key == "":
		return ""
	case cfg.keySource != nil:
		return "must be empty with WithAPIKeySource"
	case cfg.keyless:
		return "must be empty with WithoutAPIKey"
	default:
		return endpoint.APIKey(key)
	}
}

// checkLease returns why the leases of the guard are too short, or "".
func (cfg *config) checkLease() string {
	guard, ok := cfg.guard.(interface{ Lease() time.Duration })
	if !ok {
		return ""
	}
	lease, longest := guard.Lease(), cfg.longestInvoice()
	if lease == 0 || lease > longest { // 0 is a lease that never ends
		return ""
	}
	return fmt.Sprintf("the lease of the guard is %v, and must be longer than an invoice may take, which is %v by WithRetry: "+
		"set a longer lease of the guard, or a shorter InvoiceTimeout", lease, longest)
}

func newClient(base endpoint.Base, key redact.Secret, cfg *config, transport *attempt.Transport) *Client {
	sender := &http.Client{Transport: transport, CheckRedirect: useLastResponse}
	trees := &sync.Pool{New: func() any { return new(doc.Doc) }}
	cfg.http = nil // it is not to be reached from the client: see http
	return &Client{
		base:      base,
		key:       key,
		redactor:  redact.New(key),
		cfg:       cfg,
		observers: cfg.allObservers(),
		request:   &http.Request{Method: http.MethodGet, Host: base.Host(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		retrier:   &attempt.Retrier{Policy: cfg.retry.limits()},
		orders:    &ordersInFlight{},

		http:  func() *http.Client { return sender },
		trees: func() *sync.Pool { return trees },
	}
}

// Check reports whether a program that starts can work with the gateway and its [OrderGuard]. It makes one attempt at
// the balance, or at the listing with [WithoutAPIKey], and accepts a balance of any form, also one that the service
// answers with its own 404. If the guard has a method Check(context.Context) error, such as that of sqlguard, it
// calls that too. The error joins what is wrong with both.
//
// Do not use Check for readiness probes: while the gateway is down they would remove every replica of the program,
// which could still return the invoices that it knows.
//
// GET /api/balance/ or GET /api/networks-coins
func (c *Client) Check(ctx context.Context) error {
	if name, reason := c.check(ctx); reason != "" {
		return &ArgumentError{Operation: "check", Name: name, Reason: reason}
	}
	return errors.Join(c.checkGateway(ctx), c.checkGuard(ctx))
}

func (c *Client) checkGateway(ctx context.Context) error {
	what := operation{name: OpBalance, route: "/api/balance/", key: keyInHeader, undocumented: true, once: true}
	if c.cfg.keyless {
		what = operation{name: OpCoinNetworks, route: "/api/networks-coins", once: true}
	}
	check := &call{client: c, operation: what, decode: func(e envelope) *doc.Error {
		_, wrong := e.undocumented(c.cfg.decodeBalance != nil && !c.cfg.keyless)
		return wrong
	}}
	err := check.run(ctx, nil)
	if refusal, ok := err.(*APIError); ok && refusal.StatusCode == http.StatusNotFound && refusal.said.enveloped && !c.cfg.keyless {
		return nil // it has no balance, and has accepted the key
	}
	return err
}

func (c *Client) checkGuard(ctx context.Context) error {
	guard, ok := c.cfg.guard.(interface{ Check(context.Context) error })
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	if err := guard.Check(ctx); err != nil {
		return fmt.Errorf("gateway: check: the order guard: %w", sanitize(err, c.redactor))
	}
	return nil
}

// Shutdown ends the sending of invoices: it waits until every call of [Client.CreateInvoice] has returned, or returns
// the error of a context that ends before. From then on, a call still returns an invoice that the [OrderGuard] knows;
// one that would send an invoice returns a [*TransportError] that matches [ErrShutdown], and nothing was sent. All
// other calls go on.
//
// An invoice is sent for at most as long as [RetryPolicy] allows, and the guard may take 10 seconds before
// and after it.
func (c *Client) Shutdown(ctx context.Context) error {
	if name, reason := c.check(ctx); reason != "" {
		return &ArgumentError{Operation: "shutdown", Name: name, Reason: reason}
	}
	select {
	case <-c.orders.close():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ordersInFlight counts the calls for orders, until there are none after it was closed.
type ordersInFlight struct {
	mu     sync.Mutex
	calls  int
	closed bool
	none   chan struct{} // is closed when there are no calls; nil while nobody waits
}

func (o *ordersInFlight) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
}

func (o *ordersInFlight) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls--; o.calls == 0 && o.none != nil {
		close(o.none)
		o.none = nil
	}
}

func (o *ordersInFlight) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// close returns a channel that is closed once there are no calls.
func (o *ordersInFlight) close() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	none := o.none
	if none == nil {
		none = make(chan struct{})
	}
	if o.calls == 0 {
		close(none)
	} else {
		o.none = none
	}
	return none
}

// CloseIdleConnections closes the connections that no call is using. Those of a RoundTripper of the
// caller's are closed by its own CloseIdleConnections, if it has one. The client can be used
// afterwards, and closing it is not necessary.
func (c *Client) CloseIdleConnections() {
	transport := c.transport()
	if transport.Pools != nil {
		transport.Pools.CloseIdleConnections()
	} else if closer, ok := transport.Next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// refresh closes connections that may lead to a host that does not work.
func (c *Client) refresh() {
	if pools := c.transport().Pools; pools != nil {
		pools.Refresh()
	}
}

func (c *Client) transport() *attempt.Transport { return c.http().Transport.(*attempt.Transport) }

// useLastResponse follows no redirect.
func useLastResponse(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// transport returns what makes the attempts of all calls.
func (cfg *config) transport() (*attempt.Transport, error) {
	transport := &attempt.Transport{
		ReadTimeout: attempt.Timeout(cfg.retry.AttemptTimeout), InvoiceTimeout: attempt.Timeout(cfg.retry.InvoiceTimeout),
		MaxBody: maxBody, MaxErrorBody: maxErrorBody, IsTransient: attempt.IsRetryableStatus,
	}
	var given http.RoundTripper
	if cfg.http != nil {
		given = cfg.http.Transport // nothing else of it is used
	}
	if own, ok := given.(*http.Transport); ok || given == nil {
		transport.Pools = attempt.NewPools(own)
		given = transport.Pools
	} else {
		transport.Next = given
	}
	for _, wrap := range cfg.middleware {
		if given = wrap(given); given == nil {
			return nil, badOption("WithMiddleware", "must not return nil")
		}
		transport.Next = given
	}
	return transport, nil
}

// Environment variables that [FromEnv] reads.
const (
	envBaseURL    = "GATEWAY_BASE_URL"
	envAPIKey     = "GATEWAY_API_KEY" // #nosec G101 -- the name of a variable
	envAPIKeyFile = "GATEWAY_API_KEY_FILE"
	envPlainHTTP  = "GATEWAY_PLAIN_HTTP"
)

// FromEnv returns a client as [New] does, from environment variables: the base URL from
// GATEWAY_BASE_URL, which is required, and the key from GATEWAY_API_KEY or from the file that
// GATEWAY_API_KEY_FILE names, as [APIKeyFile] reads it, once. One of the two is required, unless an option is
// [WithAPIKeySource] or [WithoutAPIKey]. The key must not be in quotes, and NAME= must not precede it.
// GATEWAY_PLAIN_HTTP=1 is [WithPlainHTTP]; opts come after it.
//
// An empty variable counts as not set. An error is an [*ArgumentError] that names the variable or the option.
func FromEnv(opts ...Option) (*Client, error) {
	baseURL := os.Getenv(envBaseURL)
	if baseURL == "" {
		return nil, badOption(envBaseURL, "is required")
	}
	key, from, err := keyFromEnv()
	if err != nil {
		return nil, err
	}
	switch os.Getenv(envPlainHTTP) {
	case "", "0":
	case "1":
		opts = append([]Option{WithPlainHTTP()}, opts...)
	default:
		return nil, badOption(envPlainHTTP, "must be 1 or 0")
	}
	client, err := New(baseURL, key, opts...)
	return client, inEnv(err, from)
}

// keyFromEnv returns the key and the variable that it came from.
func keyFromEnv() (key, from string, err error) {
	key, file := os.Getenv(envAPIKey), os.Getenv(envAPIKeyFile)
	switch {
	case key != "" && file != "":
		return "", "", badOption(envAPIKeyFile, "must not be set together with "+envAPIKey)
	case file != "":
		if key, err = readKey(file); err != nil {
			err = badOption(envAPIKeyFile, oneLine(err))
		}
		return key, envAPIKeyFile, err
	default:
		if mistake := keyMistake(key); mistake != "" {
			err = badOption(envAPIKey, "has "+mistake)
		}
		return key, envAPIKey, err
	}
}

// APIKeyFile returns a source for [WithAPIKeySource] that reads the key from a file at each call: a
// regular file, or a link to one, with the key alone on one line, not in quotes and without NAME=
// before it. Replace it by renaming a new one. The error of a file that cannot be read, or has no key
// that [New] accepts, has neither its name nor its content.
func APIKeyFile(name string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return readKey(name) }
}

// readKey returns the key in a file. No error has the name of the file, which could be the
// key in the wrong variable.
func readKey(name string) (string, error) {
	text, err := readStart(name, endpoint.MaxAPIKeyFile)
	if err != nil {
		return "", err
	}
	key := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	switch reason := endpoint.APIKey(key); {
	case strings.ContainsAny(key, "\r\n"):
		return "", errors.New("the file has several lines: write the key alone")
	case keyMistake(key) != "":
		return "", errors.New("the file has " + keyMistake(key))
	case reason != "":
		return "", errors.New("the key in the file " + reason)
	default:
		return key, nil
	}
}

// keyMistake returns what a text has beside a key, and what to do; "" for nothing.
func keyMistake(text string) string {
	switch {
	case isAssignment(text):
		return "NAME=...: write the value alone"
	case len(text) > 1 && text[0] == text[len(text)-1] && strings.ContainsAny(text[:1], `"'`):
		return "quotes: write the key without them"
	default:
		return ""
	}
}

// isAssignment reports whether text is a line of a .env file or of a shell script. The = that
// end a key in base64 assign nothing.
func isAssignment(text string) bool {
	name, value, _ := strings.Cut(strings.TrimPrefix(text, "export "), "=")
	name = strings.TrimSpace(name)
	isOther := func(char rune) bool { return char != '_' && !unicode.IsLetter(char) && !unicode.IsDigit(char) }
	return name != "" && !unicode.IsDigit(rune(name[0])) && !strings.ContainsFunc(name, isOther) && strings.Trim(value, "=") != ""
}

// readStart reads at most most bytes of a regular file, and a byte more. Another one could block, such
// as a pipe without a writer.
func readStart(name string, most int) (string, error) {
	text, err := readRegular(name, most)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", err)
	}
	return text, nil
}

func readRegular(name string, most int) (string, error) {
	info, err := os.Stat(name) // #nosec G304 G703 -- whoever sets the environment, or calls APIKeyFile, chooses the file
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	file, err := os.Open(name) // #nosec G304 G703 -- the same
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	return string(text), err
}

// inEnv names the variable that an argument of [New] came from.
func inEnv(err error, keyFrom string) error {
	var wrong *ArgumentError
	if errors.As(err, &wrong) {
		switch wrong.Name {
		case "baseURL":
			wrong.Name = envBaseURL
			wrong.Reason = strings.ReplaceAll(wrong.Reason, "with WithPlainHTTP", "with "+envPlainHTTP+"=1")
		case "apiKey":
			wrong.Name = keyFrom
			wrong.Reason = strings.Replace(wrong.Reason, "is required;", "is required, or "+envAPIKeyFile+";", 1)
		}
	}
	return err
}
