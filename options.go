package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	defaultMaxResponseBytes = 8 << 20
	mostMaxResponseBytes    = 1 << 30
)

// An Option changes how [New] makes a [Client]. The last of several for the
// same thing counts.
type Option func(*config) error

// config is what the options set.
type config struct {
	http        *http.Client
	retry       RetryPolicy
	userAgent   string
	format      InvoiceFormat
	keyOnPublic bool
	plainHTTP   bool
	guard       OrderGuard
	maxBytes    int64
	keySource   func(context.Context) (string, error)
	observer    Observer
	logger      *slog.Logger
}

func newConfig(opts []Option) (*config, error) {
	cfg := &config{
		userAgent: "cryptogw-gateway-go/" + Version,
		guard:     newMemoryGuard(),
		maxBytes:  defaultMaxResponseBytes,
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
	return &ArgumentError{Op: "new", Name: name, Reason: reason}
}

// WithHTTPClient sends requests through the Transport of client, which is read
// once and never changed; a nil Transport means one of the [Client]'s own, as
// without this option. Its Timeout, where it has one, becomes the timeout of one
// attempt, unless [WithRetry] sets that. Its Jar and CheckRedirect are not
// used: the service sets no cookies, and redirects are never followed.
//
// A RoundTripper must not send a request twice by itself.
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

// WithRetry sets the retry policy. Zero fields take their defaults; a policy
// of zero fields only is refused.
func WithRetry(policy RetryPolicy) Option {
	return func(cfg *config) error {
		if reason := policy.check(); reason != "" {
			return badOption("WithRetry", reason)
		}
		cfg.retry = policy
		return nil
	}
}

// WithUserAgent sets the User-Agent header: 1 to 256 printable ASCII
// characters. The default names this library and its version.
func WithUserAgent(agent string) Option {
	return func(cfg *config) error {
		if agent == "" || len(agent) > maxPathText || !isHeaderValue(agent) {
			return badOption("WithUserAgent", "must be 1 to 256 printable ASCII characters")
		}
		cfg.userAgent = agent
		return nil
	}
}

// WithInvoiceFormat chooses how an invoice is spelled on the wire, where
// INTERFACE.md says it in two ways. The default is [SampleInvoiceFormat].
func WithInvoiceFormat(format InvoiceFormat) Option {
	return func(cfg *config) error {
		if format != SampleInvoiceFormat && format != TableInvoiceFormat {
			return badOption("WithInvoiceFormat", "must be SampleInvoiceFormat or TableInvoiceFormat")
		}
		cfg.format = format
		return nil
	}
}

// WithAPIKeyOnPublicCalls sends the key header on the listing, the lookups and
// the exchange rates too. Whether the service wants it there is not shown
// (INTERFACE.md, "Authentication", 3); without this option it is not sent.
func WithAPIKeyOnPublicCalls() Option {
	return func(cfg *config) error {
		cfg.keyOnPublic = true
		return nil
	}
}

// WithAPIKeySource asks source for the key, once for each call that sends one,
// under the context of the call; the apiKey of [New] must then be empty. A key
// may change from call to call. An error of source ends the call with a
// [*TransportError] that matches it, before anything is sent; an empty key is
// one that is missing. [WithAPIKey] comes first: then source is not asked.
//
// A key that [New] would refuse is an [*ArgumentError]. Source must return when
// the context ends; a retry does not ask it again. It is meant for the changing
// keys of one merchant: for many merchants use [WithAPIKey], by which the
// default [OrderGuard] keeps their orders apart. Of the keys that it gave, those
// of the call and the last 4 are looked for in answers.
//
// It must be safe for concurrent use.
func WithAPIKeySource(source func(context.Context) (string, error)) Option {
	return func(cfg *config) error {
		if source == nil {
			return badOption("WithAPIKeySource", "must not be nil")
		}
		cfg.keySource = source
		return nil
	}
}

// WithOrderGuard sets what keeps two invoices from being created for one
// order. The default is in the memory of the client; nil turns the guard off.
func WithOrderGuard(guard OrderGuard) Option {
	return func(cfg *config) error {
		cfg.guard = guard
		return nil
	}
}

// WithMaxResponseBytes bounds the body of a successful answer, decompressed:
// from 1 byte to 1 GiB. The default is 8 MiB. A listing takes about as much
// memory as its text. What is announced and not sent takes no more either, and
// about 80 MiB at most.
func WithMaxResponseBytes(n int64) Option {
	return func(cfg *config) error {
		if n < 1 || n > mostMaxResponseBytes {
			return badOption("WithMaxResponseBytes", "must be from 1 byte to 1 GiB")
		}
		cfg.maxBytes = n
		return nil
	}
}

// WithPlainHTTP allows a base URL of http to a host that is not this machine.
// The key then travels where others can read it.
func WithPlainHTTP() Option {
	return func(cfg *config) error {
		cfg.plainHTTP = true
		return nil
	}
}

// A CallOption changes one call.
type CallOption func(*callConfig) *ArgumentError

// callConfig is what the options of one call set.
type callConfig struct {
	response *Response
	header   http.Header
	key      *secret
	resubmit bool
}

// apply applies all options, also after one that is refused: a Response
// among them must not keep what an earlier call has left in it.
func (cfg *callConfig) apply(op string, opts []CallOption) (refusal *ArgumentError) {
	for _, opt := range opts {
		if opt == nil {
			opt = func(*callConfig) *ArgumentError { return &ArgumentError{Name: "opts", Reason: "holds a nil option"} }
		}
		if wrong := opt(cfg); refusal == nil {
			refusal = wrong
		}
	}
	if refusal == nil && cfg.resubmit && op != opCreateInvoice {
		refusal = &ArgumentError{Name: "AllowResubmit", Reason: "is for CreateInvoice only"}
	}
	if refusal != nil {
		refusal.Op = op
	}
	return refusal
}

// A Response is what came with a result: [WithResponse] fills it, on failure
// too, as far as there was an answer. The key is in none of it.
type Response struct {
	StatusCode int            // of the last answer; 0 when none came
	Header     http.Header    // of the last answer that was looked at
	Message    string         // the envelope's message, at most 1 KiB
	Meta       jsontext.Value // the envelope's meta
	Result     jsontext.Value // the envelope's result, as it came; nil when there was none
	Attempts   int            // how often the request was tried
	Duration   time.Duration  // of the whole call, waits included
}

// WithResponse fills r with what came besides the result. What r held before
// is overwritten. One Response is for one call at a time; nil is refused.
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

// WithHeader adds a header to the request: a name of at most 256 bytes, a value
// of at most 1,024 printable ASCII characters. Headers that the client or the
// protocol owns are refused, among them x-api-key, Host, Content-Type and
// Idempotency-Key: HTTP libraries replay a request that carries the latter.
func WithHeader(name, value string) CallOption {
	return func(cfg *callConfig) *ArgumentError {
		switch {
		case !isToken(name):
			return &ArgumentError{Name: "WithHeader", Reason: "the name is not a header name"}
		case isOwned(name):
			return &ArgumentError{Name: "WithHeader", Reason: http.CanonicalHeaderKey(name) + " is set by the client or by HTTP itself"}
		case !isHeaderValue(value) || len(value) > maxBodyText:
			return &ArgumentError{Name: "WithHeader", Reason: "the value must be at most 1,024 printable ASCII characters"}
		}
		if cfg.header == nil {
			cfg.header = http.Header{}
		}
		cfg.header.Add(name, value)
		return nil
	}
}

// isOwned reports whether a header is not the caller's to set.
func isOwned(name string) bool {
	switch strings.ToLower(name) {
	case "x-api-key", "host", "content-length", "content-type", "transfer-encoding", "connection", "keep-alive",
		"proxy-connection", "proxy-authorization", "te", "trailer", "upgrade", "expect", "range",
		"accept", "accept-encoding", "user-agent", "idempotency-key", "x-idempotency-key":
		return true
	}
	return false
}

// WithAPIKey makes the call with another key than the client's: one
// process, many merchants. The key is 1 to 4,096 printable ASCII characters.
func WithAPIKey(key string) CallOption {
	return func(cfg *callConfig) *ArgumentError {
		if reason := checkKey(key); reason != "" {
			return &ArgumentError{Name: "WithAPIKey", Reason: reason}
		}
		s := newSecret(key)
		cfg.key = &s
		return nil
	}
}

// AllowResubmit lets [Client.CreateInvoice] send an order of which an earlier
// outcome is unknown. Pass it once it is known that no invoice exists. On other
// calls it is refused.
func AllowResubmit() CallOption {
	return func(cfg *callConfig) *ArgumentError {
		cfg.resubmit = true
		return nil
	}
}
