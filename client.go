// Package gateway is a client for a cryptocurrency payment gateway: coins and networks, exchange rates, balances,
// invoices and withdrawals.
//
// A [Client] has a method for each endpoint of the service. A process makes one client with [New], or with [FromEnv]
// from environment variables, and calls [Client.Shutdown] before it ends.
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
// Amounts are exact, never a float. An amount that is missing, null or malformed is never a silent zero: it is an
// error that names its place, or the result says which one it is, as [CoinNetwork] and [Rate] do.
//
// [Client.CreateInvoice] sends at most one invoice. The client's [OrderGuard] remembers the order, so that the same
// call again returns the same invoice. The default guard is in memory: it forgets everything at a restart, and knows
// no other process. Package sqlguard has one for a database.
//
// After an error, [OutcomeOf] says what the error means for the order: [OutcomeNotSent], [OutcomeRejected],
// [OutcomeConflict] or [OutcomeUnknown]. After an unknown outcome an invoice may exist: call again
// if [SafeToRetry] is true, otherwise look the order up before anything else.
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
// A read is retried, within the limits of [RetryPolicy], if the connection was refused, reset, cut or
// timed out, if the name server did not respond, if the body was cut or damaged, and after the
// statuses 408, 425, 429, 500, 502 to 504, 520 to 524 and 529. All retries of a client share a
// budget, which successful calls refill. An invoice is retried only if nothing of it was sent, which
// the client proves, or with [WithIdempotentOrders].
//
// # The key
//
// Printing a client, an option, a result or an error never shows the key. If a response repeats a
// key of 8 characters or more, the client replaces it with [REDACTED], however it is escaped in JSON:
// SECURITY.md of the repository lists the limits.
//
// # Undocumented responses
//
// The service documents only a part of its interface: see docs/interface.md of the repository. Documented results have
// typed fields. Rates, balances and the lookups of pairs are not documented: the client reads a few plain forms, or
// calls the functions of [WithRatesDecoder], [WithBalanceDecoder] and [WithCoinNetworkDecoder]. Rates and balances keep
// the result in a field Raw. So does an invoice; its Details are what the function of [WithInvoiceDecoder] returns.
// [WithResponse] returns the envelope of any response. A list skips records that cannot be read: see [Skipped].
//
// # Other packages
//
// These belong to this module:
//
//   - [github.com/cryptogw/gateway/pricing] converts a price into coins, and checks what can be paid and withdrawn.
//   - [github.com/cryptogw/gateway/gatewaytest] is a gateway in memory to test against, which injects faults.
//   - [github.com/cryptogw/gateway/guardtest] tests an [OrderGuard] of your own.
//
// These are modules of their own:
//
//   - [github.com/cryptogw/gateway/sqlguard] is an [OrderGuard] in PostgreSQL, MariaDB or SQLite, which survives
//     restarts and is shared by processes.
//   - [github.com/cryptogw/gateway/rivergateway] runs invoices, and waits for withdrawals, as jobs of River.
//   - [github.com/cryptogw/gateway/otelgateway] records OpenTelemetry traces and metrics, and has rules for alarms.
//   - [github.com/cryptogw/gateway/cmd/gateway] is a command for shells: it tries a gateway, serves a stand-in, and
//     ends unknown orders. Its module is github.com/cryptogw/gateway/cmd.
package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/doc"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
)

// Version is the version of this library: its tag without the v. The default
// User-Agent has it.
const Version = "0.1.0"

const maxBody = 8 << 20 // of a response below 400

// A Client calls the gateway. [New] makes it. It is safe for concurrent use, and only [Client.Shutdown] changes it.
type Client struct {
	base      endpoint.Base
	key       redact.Secret
	redactor  redact.Redactor // of the client's own key, and of the secrets in its default headers
	cfg       *config
	observers []Observer
	request   *http.Request // all that requests have in common
	retrier   *attempt.Retrier
	flights   *flights
	leave     func() // no longer counts the client among those with the default guard; nil if it is not counted

	// Functions, so that a dump by reflection reaches neither transports, which may hold
	// credentials, nor pooled buffers.
	http  func() *http.Client
	trees func() *sync.Pool // of *doc.Doc
}

// New returns a client for the gateway at baseURL, such as "https://gateway.example/merchant". Make one client for a
// process, and share it: with the default guard, another client does not know the orders of the first, and would send
// a second invoice for an order. If a process makes a second such client for the same base URL and key, the client logs
// a warning, unless the host is a loopback address or the first client was shut down.
//
// A path of the URL precedes every route. The scheme must be https, except for a loopback host or with [WithPlainHTTP].
//
// The key has 1 to 4,096 printable ASCII characters. It must be empty with [WithAPIKeySource] or [WithoutAPIKey].
//
// New returns an [*ArgumentError] for a bad argument or option. If the [OrderGuard] has a method Lease() time.Duration,
// its lease must be longer than an invoice may take by [RetryPolicy]; 0 means that it never ends.
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
		cfg.callTimeout = cfg.http.Timeout
	}
	cfg.retry = cfg.retry.withDefaults()
	if reason := cfg.checkLease(); reason != "" {
		return nil, badOption("WithOrderGuard", reason)
	}
	transport, err := cfg.transport()
	if err != nil {
		return nil, err
	}
	client := newClient(base, redact.NewSecret(apiKey), cfg, transport)
	switch {
	case base.Loopback():
	case cfg.guard == nil:
		cmp.Or(cfg.logger, slog.Default()).Warn("gateway: this client has no OrderGuard, because WithOrderGuard " +
			"got nil: two calls for an order send two invoices")
	case !cfg.hasGuard:
		client.leave = enterOwnGuard(base, apiKey, cfg.logger)
	}
	return client, nil
}

// ownGuards counts the clients with the default guard that were not shut down, by digests of their base URLs and keys.
// It is the only state of this package: a warning is all that depends on it.
var ownGuards = struct {
	sync.Mutex
	clients map[[sha256.Size]byte]int
}{clients: map[[sha256.Size]byte]int{}}

// enterOwnGuard counts a client with the default guard, and warns about the second one. It returns a function that no
// longer counts the client.
func enterOwnGuard(base endpoint.Base, key string, logger *slog.Logger) (leave func()) {
	digest := sha256.Sum256([]byte(base.String() + "\x00" + key))
	ownGuards.Lock()
	defer ownGuards.Unlock()
	ownGuards.clients[digest]++
	if ownGuards.clients[digest] == 2 {
		cmp.Or(logger, slog.Default()).Warn("gateway: this process has a second client for the same gateway and key, " +
			"and neither knows the orders of the other: share one client, or give both a guard by WithOrderGuard")
	}
	return sync.OnceFunc(func() {
		ownGuards.Lock()
		defer ownGuards.Unlock()
		if ownGuards.clients[digest]--; ownGuards.clients[digest] == 0 {
			delete(ownGuards.clients, digest)
		}
	})
}

// checkKey returns why a client cannot have the key, or "".
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
	case keyMistake(key) != "":
		return "has " + keyMistake(key)
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
	if lease == 0 || lease > longest { // 0 never ends
		return ""
	}
	return fmt.Sprintf("the lease of the guard is %v, and must be longer than an invoice may take, "+
		"which is %v by WithRetry: set a longer lease of the guard, or a shorter InvoiceTimeout", lease, longest)
}

func newClient(base endpoint.Base, key redact.Secret, cfg *config, transport *attempt.Transport) *Client {
	sender := &http.Client{Transport: transport, CheckRedirect: useLastResponse}
	trees := &sync.Pool{New: func() any { return new(doc.Doc) }}
	cfg.http = nil // a dump of the client must not reach it: see http
	return &Client{
		base:      base,
		key:       key,
		redactor:  redact.New(key).With(cfg.defaults.secrets()...),
		cfg:       cfg,
		observers: cfg.allObservers(),
		request:   &http.Request{Method: http.MethodGet, Host: base.Host(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		retrier:   &attempt.Retrier{Policy: cfg.retry.limits()},
		flights:   newFlights(),

		http:  func() *http.Client { return sender },
		trees: func() *sync.Pool { return trees },
	}
}

// Check is for the start of a program: it reports whether the gateway accepts the key and whether the [OrderGuard]
// works. It makes one attempt to read the balance, or the listing with [WithoutAPIKey]. It accepts a balance in any
// form, and the service's own 404. It calls the method Check(context.Context) error of the guard, if there is one:
// sqlguard looks for its table. The error joins both failures.
//
// Do not use Check as a readiness probe: while the gateway is down, the probe would remove every replica of a program
// that can still return the invoices that it knows.
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
	err := check.get(ctx, nil)
	refusal, ok := err.(*APIError)
	if ok && refusal.StatusCode == http.StatusNotFound && refusal.said.enveloped && !c.cfg.keyless {
		return nil // there is no balance, and the key was accepted
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

// Shutdown stops the client from sending invoices, and waits until every call of [Client.CreateInvoice] has returned,
// and until every invoice whose caller has left is sent and recorded. If the context ends first, Shutdown returns its
// error, and outcomes that the [OrderGuard] could not record so far are not recorded. From then on, CreateInvoice still
// returns an invoice that the guard knows; instead of sending one it returns a [*TransportError] that matches
// [ErrShutdown]. Reads go on.
//
// Call Shutdown before the program ends: an invoice that is being sent when the process ends is in flight until its
// lease ends, and unknown afterwards. Allow for the time that an invoice may take by [RetryPolicy], 10 seconds for the
// guard before and after it, and the time that the source of [WithAPIKeySource] takes.
func (c *Client) Shutdown(ctx context.Context) error {
	if name, reason := c.check(ctx); reason != "" {
		return &ArgumentError{Operation: "shutdown", Name: name, Reason: reason}
	}
	if c.leave != nil {
		c.leave()
	}
	none := c.flights.close()
	select {
	case <-none: // although the context may have ended
		return nil
	default:
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		c.flights.stop()
		return ctx.Err()
	}
}

// CloseIdleConnections closes the connections that no call is using. A caller's RoundTripper closes
// them by its own method CloseIdleConnections, if it has one. The client stays usable. It need not be closed.
func (c *Client) CloseIdleConnections() {
	if c == nil || c.cfg == nil {
		return // not made by New
	}
	transport := c.transport()
	if transport.Pools != nil {
		transport.Pools.CloseIdleConnections()
	} else if closer, ok := transport.Next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
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

// FromEnv calls [New] with values from environment variables: make one client for a process. GATEWAY_BASE_URL is
// required. The key is in GATEWAY_API_KEY, or in the file that GATEWAY_API_KEY_FILE names, which is read once, by the
// rules of [APIKeyFile]. One of the two is required, unless opts have [WithAPIKeySource] or [WithoutAPIKey]. A key in
// quotes, or after NAME=, is refused. GATEWAY_PLAIN_HTTP=1 means [WithPlainHTTP].
//
// An empty variable counts as unset. The error is an [*ArgumentError] that names the variable or the option.
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

// APIKeyFile returns a source for [WithAPIKeySource] that reads the key from a file at each call. The
// file, or the target of a link, is regular and has the key alone on one line, without quotes and
// without NAME= before it. To change the key, rename a new file over it. An error shows neither the name
// nor the content of the file.
func APIKeyFile(name string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return readKey(name) }
}

// readKey returns the key in a file. An error does not name the file: the name could be a key in
// the wrong variable.
func readKey(name string) (string, error) {
	info, err := os.Stat(name) // #nosec G304 G703 -- whoever sets the environment, or calls APIKeyFile, chooses the file
	switch {
	case err == nil && !info.Mode().IsRegular(): // a pipe without a writer would block
		return "", errors.New("the file cannot be read: it is not a regular file")
	case err == nil && info.Size() > int64(endpoint.MaxAPIKeyFile):
		return "", errors.New("the key in the file is longer than 4,096 bytes")
	}
	text, err := os.ReadFile(name) // #nosec G304 G703 -- the same
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return "", fmt.Errorf("the file cannot be read: %w", path.Err)
	}
	key := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if mistake := keyMistake(key); mistake != "" {
		return "", errors.New("the file has " + mistake)
	}
	if reason := endpoint.APIKey(key); reason != "" {
		return "", errors.New("the key in the file " + reason)
	}
	return key, nil
}

var assignment = regexp.MustCompile(`^(export )?[A-Za-z_]\w* *= *[^= ]`) // a key in base64 may end with =

// keyMistake returns what surrounds the key in a text, and what to do; "" if nothing does.
func keyMistake(text string) string {
	switch {
	case assignment.MatchString(text):
		return "NAME=...: write the value alone"
	case len(text) > 1 && text[0] == text[len(text)-1] && strings.ContainsAny(text[:1], `"'`):
		return "quotes: write the key without them"
	default:
		return ""
	}
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
