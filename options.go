package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
)

// An Option changes how [New] makes a [Client]. If an option is repeated, the last
// one wins; only [WithObserver] and [WithMiddleware] add.
type Option func(*config) error

// config holds what the options set.
type config struct {
	http        *http.Client
	middleware  []func(http.RoundTripper) http.RoundTripper // of WithMiddleware, the innermost first
	retry       RetryPolicy
	callTimeout time.Duration // of an invoice: the Timeout of the http.Client; 0 for none
	userAgent   string
	format      InvoiceFormat
	keyOnPublic bool
	plainHTTP   bool
	guard       OrderGuard
	hasGuard    bool // of WithOrderGuard
	idempotent  bool

	successMessage string // besides the documented one; empty for none
	decodePairs    func(json.RawMessage) ([]CoinNetwork, error)
	decodeRates    func(json.RawMessage) ([]Rate, error)
	decodeBalance  func(json.RawMessage) ([]BalanceAmount, error)
	decodeInvoice  func(json.RawMessage) (InvoiceDetails, error)
	keySource      func(context.Context) (string, error)
	keyless        bool
	defaults       callConfig // of [WithDefaults]
	observers      []Observer // of WithObserver, in order
	logger         *slog.Logger
}

func newConfig(opts []Option) (*config, error) {
	cfg := &config{
		userAgent: "cryptogw-gateway-go/" + Version,
		guard:     new(MemoryGuard),
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, badOption("opts", "holds a nil option")
		}
		if err := opt(cfg); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

func badOption(name, reason string) error {
	return &ArgumentError{Operation: "new", Name: name, Reason: reason}
}

// notNil returns an option that sets its argument, which must not be nil.
func notNil(name string, isNil bool, set func(*config)) Option {
	return func(cfg *config) error {
		if isNil {
			return badOption(name, "must not be nil")
		}
		set(cfg)
		return nil
	}
}

// WithHTTPClient sends requests through the Transport of client. Its Timeout, if it is above zero, limits one attempt
// of a read, unless [WithRetry] does, and is a deadline of each call of [Client.CreateInvoice], as if its context had
// it. Its Jar and CheckRedirect are ignored: redirects are never followed.
//
// An [*http.Transport] is cloned, once for invoices and once for reads, without the protocols of RegisterProtocol;
// later changes of it have no effect. A nil Transport means connections of the client's own. In both cases:
//
//   - Over HTTP/1.1 each invoice has a connection of its own.
//   - Over HTTP/2 later requests use new connections after a request that failed or was answered with 502, 503 or 504,
//     and after an invoice that took three seconds, at most once a second. So MaxConnsPerHost limits only the
//     connections of HTTP/1.1.
//   - A connection is closed when it has been idle for 90 seconds, for invoices 2 seconds, and over HTTP/2 when nothing
//     can be written to it for 5 seconds. A shorter time of the transport counts.
//   - No TLS session is resumed if VerifyPeerCertificate, GetClientCertificate or InsecureSkipVerify is set, unless the
//     transport has a ClientSessionCache.
//
// Any other RoundTripper manages its connections itself. If it keeps connections of HTTP/1.1 open, the client may take
// an unsolicited response for the response to an invoice, an invoice is unknown if the server closes the connection
// while it is sent, and a retry may use the same dead connection. The RoundTripper must return when the context of its
// request ends, and must not send a request twice: an invoice that is in its trace twice is unknown, and New refuses
// the RoundTripper of go-retryablehttp. To wrap a transport, use [WithMiddleware] instead.
func WithHTTPClient(client *http.Client) Option {
	return func(cfg *config) error {
		if client == nil {
			return badOption("WithHTTPClient", "must not be nil")
		}
		if client.Timeout < 0 {
			return badOption("WithHTTPClient", "the Timeout must not be negative")
		}
		if _, ok := client.Transport.(*retryablehttp.RoundTripper); ok {
			return badOption("WithHTTPClient", "go-retryablehttp may send an invoice twice: "+
				"pass the HTTPClient of its Client, and set retries by WithRetry")
		}
		cfg.http = client
		return nil
	}
}

// WithMiddleware wraps the client's transport, for tracing, logging or signing: wrap returns a
// RoundTripper that sends each request through next. If the option is repeated, the last one is
// outermost and sees a request first. New calls wrap once, and refuses a nil wrap or a nil result.
//
// The RoundTripper sees each attempt of a call, with the key. It may change the header of the request,
// replace its body, and send requests of its own. It must return when the context of its request
// ends. Next refuses to send an invoice again, unless it found no connection or was answered with 401 or 407.
// If the RoundTripper reads the body of an invoice and then fails to send it, the outcome is [OutcomeUnknown].
func WithMiddleware(wrap func(next http.RoundTripper) http.RoundTripper) Option {
	return notNil("WithMiddleware", wrap == nil, func(cfg *config) { cfg.middleware = append(cfg.middleware, wrap) })
}

// WithRetry sets the retry policy. The zero policy is the default policy.
func WithRetry(policy RetryPolicy) Option {
	return func(cfg *config) error {
		if reason := policy.check(); reason != "" {
			return badOption("WithRetry", reason)
		}
		cfg.retry = policy
		return nil
	}
}

// A RetryPolicy limits the attempts of a call. A zero field takes its default. A duration of 2 to 999
// nanoseconds is refused: it looks like a number without a unit.
type RetryPolicy struct {
	MaxAttempts    int           // 1 to 10, the first included; 1 turns retries off; default 3
	BaseDelay      time.Duration // of the first wait, drawn from 0 to this; default 100 ms, after 429 and 503 at least 1 s
	MaxDelay       time.Duration // the longest drawn wait; not below BaseDelay; default 5 s
	MaxRetryAfter  time.Duration // the longest Retry-After that a call obeys; default 30 s
	AttemptTimeout time.Duration // of one attempt of a read, its body included; default 15 s
	InvoiceTimeout time.Duration // of one attempt of a create-invoice, its body included; default 60 s
}

const (
	defaultMaxAttempts    = 3
	maxAttempts           = 10
	defaultBaseDelay      = 100 * time.Millisecond
	defaultMaxDelay       = 5 * time.Second
	defaultMaxRetryAfter  = 30 * time.Second
	defaultAttemptTimeout = 15 * time.Second
	defaultInvoiceTimeout = time.Minute
)

// check returns why p is refused, or "".
func (p RetryPolicy) check() string {
	switch {
	case p.MaxAttempts < 0 || p.MaxAttempts > maxAttempts:
		return "MaxAttempts must be from 1 to 10"
	case min(p.BaseDelay, p.MaxDelay, p.MaxRetryAfter, p.AttemptTimeout, p.InvoiceTimeout) < 0:
		return "durations must not be negative"
	}
	if p.MaxDelay != 0 && p.BaseDelay > p.MaxDelay {
		return "BaseDelay must not be longer than MaxDelay"
	}
	return withoutUnit(p.BaseDelay, p.MaxDelay, p.MaxRetryAfter, p.AttemptTimeout, p.InvoiceTimeout)
}

// withoutUnit returns why a duration cannot be meant, or "". A nanosecond can be, by a test that waits for nothing.
func withoutUnit(all ...time.Duration) string {
	for _, d := range all {
		if d > time.Nanosecond && d < time.Microsecond {
			return d.String() + " looks like a number without a unit: write 30 * time.Second"
		}
	}
	return ""
}

// limits returns the part of p that the retry loop needs.
func (p RetryPolicy) limits() attempt.Policy {
	return attempt.Policy{
		MaxAttempts: p.MaxAttempts, BaseDelay: p.BaseDelay, MaxDelay: p.MaxDelay, MaxRetryAfter: p.MaxRetryAfter,
	}
}

// longestInvoice is how long a CreateInvoice may take, with all its attempts. Only with
// [WithIdempotentOrders] can an attempt follow a response, whose Retry-After counts.
func (cfg *config) longestInvoice() time.Duration {
	const forever = math.MaxInt64 / (2 * maxAttempts)
	p := cfg.retry
	timeout, delay := min(p.InvoiceTimeout, forever), min(p.MaxDelay, forever)
	if cfg.idempotent {
		delay = max(delay, min(p.MaxRetryAfter, forever))
	}
	return time.Duration(p.MaxAttempts)*timeout + time.Duration(p.MaxAttempts-1)*delay
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	maxDelay := cmp.Or(p.MaxDelay, max(defaultMaxDelay, p.BaseDelay))
	return RetryPolicy{
		MaxAttempts:    cmp.Or(p.MaxAttempts, defaultMaxAttempts),
		BaseDelay:      cmp.Or(p.BaseDelay, min(defaultBaseDelay, maxDelay)),
		MaxDelay:       maxDelay,
		MaxRetryAfter:  cmp.Or(p.MaxRetryAfter, defaultMaxRetryAfter),
		AttemptTimeout: cmp.Or(p.AttemptTimeout, defaultAttemptTimeout),
		InvoiceTimeout: cmp.Or(p.InvoiceTimeout, defaultInvoiceTimeout),
	}
}

// WithUserAgent sets the User-Agent, 1 to 256 printable ASCII characters. The default is the name and
// version of this library.
func WithUserAgent(agent string) Option {
	return func(cfg *config) error {
		if agent == "" || len(agent) > endpoint.MaxURLText || !endpoint.IsHeaderValue(agent) {
			return badOption("WithUserAgent", "must be 1 to 256 printable ASCII characters")
		}
		cfg.userAgent = agent
		return nil
	}
}

// WithAPIKeyOnPublicCalls also sends the key with the listing, the lookups and the exchange rates. The
// service does not document whether they need it.
func WithAPIKeyOnPublicCalls() Option {
	return func(cfg *config) error {
		cfg.keyOnPublic = true
		return nil
	}
}

// WithAPIKeySource calls source for the key, once for each call that sends a key and has no
// [WithAPIKey]. The apiKey of [New] must then be empty.
//
// Source must be safe for concurrent use and return when the context ends, at most one attempt timeout
// later. The context ends with the caller's, but has none of its values: use [CallFromContext], which names
// the merchant of [WithMerchant], so that the key and the order belong to the same merchant. An error of source
// ends the call with a [*TransportError] that wraps it. An empty key counts as missing.
func WithAPIKeySource(source func(context.Context) (string, error)) Option {
	return notNil("WithAPIKeySource", source == nil, func(cfg *config) { cfg.keySource = source })
}

// WithoutAPIKey makes a client without a key of its own, for calls that need none and for calls with
// [WithAPIKey]. The apiKey of [New] must then be empty. Use it together with [WithAPIKeySource] if the
// source has a key only for calls with [WithMerchant].
func WithoutAPIKey() Option {
	return func(cfg *config) error {
		cfg.keyless = true
		return nil
	}
}

// WithSuccessMessage sets a further message of a success, 1 to 1,024 bytes, for a gateway that does not
// send the documented one. With either message, a status of 200 or 201 proves an invoice, unless a member of the
// response reports a failure.
func WithSuccessMessage(text string) Option {
	return func(cfg *config) error {
		if text == "" || len(text) > maxMessage {
			return badOption("WithSuccessMessage", "must be 1 to 1,024 bytes")
		}
		cfg.successMessage = text
		return nil
	}
}

// WithPlainHTTP allows a base URL with http for a host other than this machine. The key then travels
// unencrypted.
func WithPlainHTTP() Option {
	return func(cfg *config) error {
		cfg.plainHTTP = true
		return nil
	}
}

// WithDefaults sets options for every call, such as the name of a merchant, or a header that turns off the
// retries of a mesh. An option of the call wins: its [WithHeader] replaces the default values of that header. The
// default merchant does not apply to a call with [WithAPIKey]. WithResponse and WithAPIKey are refused as defaults.
func WithDefaults(opts ...CallOption) Option {
	return func(cfg *config) error {
		var defaults callConfig
		if refusal := defaults.apply("new", opts); refusal != nil {
			return refusal
		}
		if defaults.response != nil || defaults.key != nil {
			return badOption("WithDefaults", "must have neither WithResponse nor WithAPIKey: they are for one call")
		}
		cfg.defaults = defaults
		return nil
	}
}

// A CallOption changes one call. If an option is repeated, the last one wins; only [WithHeader] adds.
type CallOption func(*callConfig) *ArgumentError

// callConfig holds what the options of one call set.
type callConfig struct {
	response *Response
	header   map[string][]redact.Secret // by canonical names; no dump shows the values
	key      *redact.Secret
	merchant string
	statuses map[Drift]bool // statuses that a wait has reported; nil outside of a wait
}

// apply applies all options, even after it refuses one: a Response among them must not keep the values
// of an earlier call.
func (cfg *callConfig) apply(op string, opts []CallOption) (refusal *ArgumentError) {
	for _, opt := range opts {
		if opt == nil {
			opt = func(*callConfig) *ArgumentError { return &ArgumentError{Name: "opts", Reason: "holds a nil option"} }
		}
		if wrong := opt(cfg); wrong != nil && (refusal == nil || wrong.Name == "WithMerchant") {
			refusal = wrong // an error of WithMerchant comes first: without the name nobody knows whose order it is
		}
	}
	if refusal != nil {
		refusal.Operation = op
	}
	return refusal
}

// secrets returns what a response must not repeat to anyone: the key, and the values of headers that hold secrets.
func (cfg *callConfig) secrets() (all []redact.Secret) {
	if cfg.key != nil {
		all = append(all, *cfg.key)
	}
	for name, values := range cfg.header {
		if redact.HoldsSecret(name) {
			for _, value := range values {
				all = append(all, redact.HeaderSecrets(value.Reveal())...)
			}
		}
	}
	return all
}

// A Response is the response of a call as it came, beside the typed result. [WithResponse] fills it, even if
// the call fails after a response. It is zero if the call sent nothing.
type Response struct {
	StatusCode int             // of the last response; 0 when none came
	FetchedAt  time.Time       // when the last response was read, by the local clock, less the Age that caches report
	Header     http.Header     `json:",omitzero"` // of the last response that was read, without secrets
	Message    string          // the envelope's message, at most 1 KiB
	Meta       json.RawMessage `json:",omitzero"` // the envelope's meta, at most 64 KiB; nil for none
	Result     json.RawMessage `json:",omitzero"` // the envelope's result as it came; nil for none
	Skipped    []Skipped       `json:",omitzero"` // the first 64 records of a list that were skipped; nil for none
	Attempts   int             // how many attempts were made
	Duration   time.Duration   // of the whole call, waits included
}

// WithResponse overwrites r with the response of the call. A Response serves one call at a time; nil is
// refused.
func WithResponse(r *Response) CallOption {
	return func(cfg *callConfig) *ArgumentError {
		if r == nil {
			return &ArgumentError{Name: "WithResponse", Reason: "must not be nil"}
		}
		*r = Response{}
		cfg.response = r
		return nil
	}
}

// WithHeader adds a header to the request. The name has at most 256 bytes, the value at most 1,024
// printable ASCII characters. Headers that the client or HTTP sets are refused, and so is
// Idempotency-Key: net/http resends a request that has it. If the name has authorization, token, cookie, secret or
// key in it, the value is redacted like an API key.
func WithHeader(name, value string) CallOption {
	return func(cfg *callConfig) *ArgumentError {
		switch {
		case !endpoint.IsHeaderName(name):
			return &ArgumentError{Name: "WithHeader", Reason: "the name is not a header name"}
		case reservation(name) != "":
			return &ArgumentError{Name: "WithHeader", Reason: http.CanonicalHeaderKey(name) + " " + reservation(name)}
		case !endpoint.IsHeaderValue(value) || len(value) > endpoint.MaxBodyText:
			return &ArgumentError{Name: "WithHeader", Reason: "the value must be at most 1,024 printable ASCII characters"}
		}
		if cfg.header == nil {
			cfg.header = map[string][]redact.Secret{}
		}
		name = http.CanonicalHeaderKey(name)
		cfg.header[name] = append(cfg.header[name], redact.NewSecret(value))
		return nil
	}
}

// reservation returns why a caller must not set a header, or "".
func reservation(name string) string {
	switch strings.ToLower(name) {
	case "x-api-key", "host", "content-length", "content-type", "transfer-encoding", "connection", "keep-alive",
		"proxy-connection", "proxy-authorization", "te", "trailer", "upgrade", "expect", "range",
		"accept", "accept-encoding", "user-agent":
		return "is set by the client or by HTTP itself"
	case "idempotency-key", "x-idempotency-key":
		return "is refused: net/http resends a request that has it, and the service documents no such header"
	}
	return ""
}

// WithAPIKey makes the call with another key than the client's, for a process that serves several
// merchants. The key has 1 to 4,096 printable ASCII characters. An invoice also needs [WithMerchant],
// unless the client has no [OrderGuard].
func WithAPIKey(key string) CallOption {
	return func(cfg *callConfig) *ArgumentError {
		secret := redact.NewSecret(key)
		cfg.key = &secret
		if reason := endpoint.APIKey(key); reason != "" {
			return &ArgumentError{Name: "WithAPIKey", Reason: reason}
		}
		return nil
	}
}

// WithMerchant names the merchant of an order, for an [OrderGuard] that several merchants share. The name
// has 1 to 256 bytes of valid UTF-8, without invisible characters. It is not sent.
//
// A merchant has one name, always: to a guard, a call with a name and a call without it are of two merchants.
func WithMerchant(name string) CallOption {
	return func(cfg *callConfig) *ArgumentError {
		reason := endpoint.Identifier(name, endpoint.MaxURLText)
		if name == "" {
			reason = "must not be empty"
		}
		if reason != "" {
			return &ArgumentError{Name: "WithMerchant", Reason: reason}
		}
		cfg.merchant = name
		return nil
	}
}
