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
	userAgent   string
	format      InvoiceFormat
	keyOnPublic bool
	plainHTTP   bool
	guard       OrderGuard
	idempotent  bool

	successMessage string // besides the documented one; empty for none
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

// WithHTTPClient sends requests through the Transport of client. A Timeout above zero is that of one
// attempt, unless [WithRetry] sets it. The Jar and CheckRedirect are not used, and redirects are never
// followed.
//
// The Transport is best nil, for the client's own connections, or an [http.Transport]. That is cloned,
// once for invoices and once for everything else, without what was registered with RegisterProtocol:
// changes of it have no effect afterwards. Over HTTP/1.1 each invoice has a connection of its own. HTTP/2
// connections are pinged when they are silent and closed when they are dead; the shorter of the
// client's and the transport's timeouts applies.
//
// With any other RoundTripper, connections are the caller's business. Where it keeps HTTP/1.1
// connections open, an unsolicited response on one can be taken for the response to an invoice, and an
// invoice is unknown if the server closes its connection at that moment. A retry may meet the same
// dead connection. It must return when the context of its request ends, and must not send a request
// twice. To wrap a transport, use [WithMiddleware] instead.
func WithHTTPClient(client *http.Client) Option {
	return func(cfg *config) error {
		if client == nil {
			return badOption("WithHTTPClient", "must not be nil")
		}
		if client.Timeout < 0 {
			return badOption("WithHTTPClient", "the Timeout must not be negative")
		}
		cfg.http = client
		return nil
	}
}

// WithMiddleware wraps the client's transport, for tracing, logging or signing: wrap returns a
// RoundTripper that sends each request through next. If the option is repeated, the last one is
// outermost: it sees a request first. New calls wrap once. A nil wrap, or a nil result, is an error of
// New.
//
// The RoundTripper sees each attempt of a call, with the key. It may change the request's header and
// replace its body, and may send requests of its own. It must return when the context of its request
// ends, and must not send an invoice twice. An invoice whose body it has read is [OutcomeUnknown] if it
// then cannot be sent.
func WithMiddleware(wrap func(next http.RoundTripper) http.RoundTripper) Option {
	return func(cfg *config) error {
		if wrap == nil {
			return badOption("WithMiddleware", "must not be nil")
		}
		cfg.middleware = append(cfg.middleware, wrap)
		return nil
	}
}

// WithRetry sets the retry policy. The zero policy is the default one.
func WithRetry(policy RetryPolicy) Option {
	return func(cfg *config) error {
		if reason := policy.check(); reason != "" {
			return badOption("WithRetry", reason)
		}
		cfg.retry = policy
		return nil
	}
}

// A RetryPolicy limits the attempts of a call. A zero field takes its default. Durations must not
// be negative.
type RetryPolicy struct {
	MaxAttempts    int           // 1 to 10, the first included; 1 turns retries off; default 3
	BaseDelay      time.Duration // the first wait is drawn between 0 and this; default 100 ms, after 429 and 503 at least 1 s
	MaxDelay       time.Duration // the longest drawn wait; not below BaseDelay; default 5 s
	MaxRetryAfter  time.Duration // the longest Retry-After that a call waits for; default 30 s
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

// check returns what is wrong with p, or "".
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
	return ""
}

// limits are the part of p that the retry loop needs.
func (p RetryPolicy) limits() attempt.Policy {
	return attempt.Policy{MaxAttempts: p.MaxAttempts, BaseDelay: p.BaseDelay, MaxDelay: p.MaxDelay, MaxRetryAfter: p.MaxRetryAfter}
}

// longestInvoice is how long a CreateInvoice may take, with all its attempts. Only with
// [WithIdempotentOrders] does one follow a response, which can ask to wait.
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

// WithUserAgent sets the User-Agent: 1 to 256 printable ASCII characters. The default names this
// library and its version.
func WithUserAgent(agent string) Option {
	return func(cfg *config) error {
		if agent == "" || len(agent) > endpoint.MaxURLText || !endpoint.IsHeaderValue(agent) {
			return badOption("WithUserAgent", "must be 1 to 256 printable ASCII characters")
		}
		cfg.userAgent = agent
		return nil
	}
}

// WithInvoiceFormat chooses how an invoice is written on the wire. The default is
// [InvoiceFormatSample].
func WithInvoiceFormat(format InvoiceFormat) Option {
	return func(cfg *config) error {
		if format != InvoiceFormatSample && format != InvoiceFormatTable {
			return badOption("WithInvoiceFormat", "must be InvoiceFormatSample or InvoiceFormatTable")
		}
		cfg.format = format
		return nil
	}
}

// WithAPIKeyOnPublicCalls sends the key with the listing, the lookups and the exchange rates too.
// Whether they require it is not documented.
func WithAPIKeyOnPublicCalls() Option {
	return func(cfg *config) error {
		cfg.keyOnPublic = true
		return nil
	}
}

// WithAPIKeySource calls source for the key, once for each call that sends one and has no
// [WithAPIKey]; the apiKey of [New] must then be empty.
//
// Source must be safe for concurrent use and return when the context ends, at most one attempt timeout
// later. The context ends with the caller's and has none of its values: [CallFromContext] names the
// merchant of [WithMerchant], so that the key and the order are of the same one. The error of source ends the
// call with a [*TransportError] that matches it; an empty key counts as missing.
func WithAPIKeySource(source func(context.Context) (string, error)) Option {
	return func(cfg *config) error {
		if source == nil {
			return badOption("WithAPIKeySource", "must not be nil")
		}
		cfg.keySource = source
		return nil
	}
}

// WithoutAPIKey makes a client that has no key of its own: for calls that need none, and for those with
// [WithAPIKey]. The apiKey of [New] must then be empty. Together with [WithAPIKeySource], it says that the
// source has a key only for calls that name their merchant.
func WithoutAPIKey() Option {
	return func(cfg *config) error {
		cfg.keyless = true
		return nil
	}
}

// WithOrderGuard sets what keeps two invoices from being created for one order. The default is a
// [MemoryGuard] of the client's own; nil means no guard.
func WithOrderGuard(guard OrderGuard) Option {
	return func(cfg *config) error {
		if memory, ok := guard.(*MemoryGuard); ok && (memory == nil || memory.Remember < 0) {
			return badOption("WithOrderGuard", "must not be a nil *MemoryGuard, and Remember must not be negative")
		}
		cfg.guard = guard
		return nil
	}
}

// WithSuccessMessage names the message of a success, 1 to 1,024 bytes, for a gateway whose message
// is not the documented one, which counts too. With either, a status of 200 or 201 proves an invoice.
func WithSuccessMessage(text string) Option {
	return func(cfg *config) error {
		if text == "" || len(text) > maxMessage {
			return badOption("WithSuccessMessage", "must be 1 to 1,024 bytes")
		}
		cfg.successMessage = text
		return nil
	}
}

// WithRatesDecoder sets the function that reads the result of [Client.ExchangeRates], in any form. It
// receives the result without keys, as Raw has it, unless that is null, [] or {}; and the whole body where
// there is no envelope. It returns each symbol once; a price that is not Valid is none. Its error is wrapped
// in a [*DecodeError]. A symbol that is empty or returned twice, and an amount that a response cannot hold,
// are errors too. Read prices into decimal.NullDecimal: a decimal.Decimal that is missing is zero.
func WithRatesDecoder(decode func(result json.RawMessage) ([]Rate, error)) Option {
	return func(cfg *config) error {
		if decode == nil {
			return badOption("WithRatesDecoder", "must not be nil")
		}
		cfg.decodeRates = decode
		return nil
	}
}

// WithBalanceDecoder sets the function that reads the result of [Client.Balance], as [WithRatesDecoder] does
// for rates. It may return a symbol several times, such as once for each network. If it cannot read an
// amount, it returns an error: without that amount the total of the coin would be wrong. It can also read a
// paginated balance, and then answers for the pages that are missing.
func WithBalanceDecoder(decode func(result json.RawMessage) ([]BalanceAmount, error)) Option {
	return func(cfg *config) error {
		if decode == nil {
			return badOption("WithBalanceDecoder", "must not be nil")
		}
		cfg.decodeBalance = decode
		return nil
	}
}

// WithInvoiceDecoder sets the function that reads [Invoice.Details]. It receives the result of the response without
// keys, as Raw has it, or the whole body where there is no envelope. It reads an invoice if it returns no error and an
// ID, an Address or a PaymentURL. A response of 200 or 201 in which it reads one proves that the invoice was created,
// whatever else the response has, and a refusal in which it reads one proves nothing. So it must return an error for
// the body of an error.
//
// Of an invoice that is proved otherwise, or is Replayed, an error of the function is in [Invoice.GuardErr], and never
// an error of the call.
func WithInvoiceDecoder(decode func(body json.RawMessage) (InvoiceDetails, error)) Option {
	return func(cfg *config) error {
		if decode == nil {
			return badOption("WithInvoiceDecoder", "must not be nil")
		}
		cfg.decodeInvoice = decode
		return nil
	}
}

// WithPlainHTTP allows a base URL of http for a host that is not this machine. The
// key then travels unencrypted.
func WithPlainHTTP() Option {
	return func(cfg *config) error {
		cfg.plainHTTP = true
		return nil
	}
}

// WithDefaults sets options of every call, such as a merchant's name, or a header that switches the retries of
// a mesh off. An option of the call wins; a [WithHeader] of the call replaces the default values of that
// header, and with [WithAPIKey] the call has no default merchant. [WithResponse] and WithAPIKey are refused.
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

// A CallOption changes one call. If an option is repeated, the last one wins; only
// [WithHeader] adds.
type CallOption func(*callConfig) *ArgumentError

// callConfig holds what the options of one call set.
type callConfig struct {
	response *Response
	header   http.Header
	key      *redact.Secret
	merchant string
	statuses map[Drift]bool // that a wait has reported; nil outside of one
}

// apply applies all options, also after one that is refused: a Response among them
// must not keep what an earlier call left in it.
func (cfg *callConfig) apply(op string, opts []CallOption) (refusal *ArgumentError) {
	for _, opt := range opts {
		if opt == nil {
			opt = func(*callConfig) *ArgumentError { return &ArgumentError{Name: "opts", Reason: "holds a nil option"} }
		}
		if wrong := opt(cfg); wrong != nil && (refusal == nil || wrong.Name == "WithMerchant") {
			refusal = wrong // an error of WithMerchant comes first: without it nobody knows whose order it is
		}
	}
	if refusal != nil {
		refusal.Operation = op
	}
	return refusal
}

// A Response is what came with a result. [WithResponse] fills it, on failure too, as far as there
// was a response. It is zero where nothing was sent because of what the [OrderGuard] knows.
type Response struct {
	StatusCode int             // of the last response; 0 when none came
	FetchedAt  time.Time       // when the last response was read, by the local clock, less the Age that it has from a cache on its way
	Header     http.Header     // of the last response that was read
	Message    string          // the envelope's message, at most 1 KiB
	Meta       json.RawMessage `json:",omitzero"` // the envelope's meta, at most 64 KiB; nil for none
	Result     json.RawMessage `json:",omitzero"` // the envelope's result as it came; nil for none
	Skipped    []Skipped       `json:",omitzero"` // the first 64 records that were skipped in a listing, a balance or rates; nil for none
	Attempts   int             // how many attempts were made
	Duration   time.Duration   // of the whole call, waits included
}

// WithResponse fills r with what came besides the result, and overwrites what it
// held. A Response serves one call at a time; nil is refused.
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

// WithHeader adds a header to the request: a name of at most 256 bytes, a value of at most 1,024
// printable ASCII characters. Headers that the client or HTTP sets are refused, and so is
// Idempotency-Key, with which net/http sends a request again by itself.
func WithHeader(name, value string) CallOption {
	return func(cfg *callConfig) *ArgumentError {
		switch {
		case !endpoint.IsHeaderName(name):
			return &ArgumentError{Name: "WithHeader", Reason: "the name is not a header name"}
		case isReserved(name):
			return &ArgumentError{Name: "WithHeader", Reason: http.CanonicalHeaderKey(name) + " is set by the client or by HTTP itself"}
		case !endpoint.IsHeaderValue(value) || len(value) > endpoint.MaxBodyText:
			return &ArgumentError{Name: "WithHeader", Reason: "the value must be at most 1,024 printable ASCII characters"}
		}
		if cfg.header == nil {
			cfg.header = http.Header{}
		}
		cfg.header.Add(name, value)
		return nil
	}
}

// isReserved reports whether a caller must not set a header.
func isReserved(name string) bool {
	switch strings.ToLower(name) {
	case "x-api-key", "host", "content-length", "content-type", "transfer-encoding", "connection", "keep-alive",
		"proxy-connection", "proxy-authorization", "te", "trailer", "upgrade", "expect", "range",
		"accept", "accept-encoding", "user-agent", "idempotency-key", "x-idempotency-key":
		return true
	}
	return false
}

// WithAPIKey makes the call with another key than the client's: one process, many
// merchants. The key is 1 to 4,096 printable ASCII characters. An invoice needs [WithMerchant]
// with it, unless the client has no [OrderGuard].
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

// WithMerchant names the merchant whose order a call is about, for an [OrderGuard] that
// several merchants share. The name is 1 to 256 bytes of valid UTF-8, without characters that nobody sees. It is not sent.
//
// One merchant has one name: calls with a name and without are of two merchants to a guard.
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
