// Package gateway is a client for a cryptocurrency payment gateway: coins and
// networks, exchange rates, balance, invoices and the inquiry of withdrawals.
//
// A [Client] has a method for each endpoint of the service. The package prints nothing, has
// no global state and keeps no goroutine in the background.
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
// Amounts are exact: they are read from the digits of the response and written from
// their own digits, never through a float. An amount that is missing, null or
// malformed is an error that names its place, never zero.
//
// [Client.CreateInvoice] puts at most one invoice on the wire, and the client's [OrderGuard]
// remembers the order: the same call again returns the same invoice. When it fails, [OutcomeOf]
// reports which of three things is true:
//
//   - [OutcomeNotSent]: no invoice is known, and this call sent no byte of one.
//   - [OutcomeRejected]: no invoice is known, and the service refused this one.
//   - [OutcomeUnknown]: it may exist. Call again if [SafeToRetry] is true; otherwise look it up
//     before anything else. Until then the guard does not let the order be sent again.
//
// # Retries
//
// A read makes several attempts, and [RetryPolicy] has their numbers.
//
//   - Retried: a connection that was refused, reset, cut or timed out, a name server
//     that did not respond, a body that was cut or cannot be decompressed, and the
//     statuses 408, 425, 429, 500, 502 to 504, 520 to 524 and 529.
//   - Not retried: a name that does not exist, a certificate or protocol version that
//     is not accepted, a proxy that requires a password, a redirect, a response that
//     is too large or cannot be decoded, and all other statuses.
//   - The first wait is drawn between 0 and BaseDelay, and each later one up to twice as
//     far, at most MaxDelay. A Retry-After of up to MaxRetryAfter is respected. A longer
//     one, and any wait past the context's deadline, ends the call at once with the last
//     error.
//   - All retries of a client share a budget, which successful calls refill, so that a
//     service that fails receives few of them.
//
// CreateInvoice retries only if it is proved that nothing of the invoice was read for
// sending, and never after a response, unless [WithIdempotentOrders] is declared.
//
// # Errors
//
// Errors have these types: [*ArgumentError] (refused here, nothing sent), [*APIError]
// (an error response of the service), [*DecodeError] (a response that cannot be
// decoded), [*TransportError] (no usable response), [*OutcomeUnknownError] (an
// invoice that may exist), [*OrderConflictError] (one that exists for another request), for
// waiting [*WithdrawalFailedError] and [*WaitError], and
// for amounts [*LimitError] (the catalog does not allow it, nothing sent). What
// callers branch on has a sentinel, such as [ErrRateLimited]. [SafeToRetry] works for
// all of them.
//
// # The key
//
// The key is sent where it is documented to be required and printed nowhere: no way of
// printing a client, an option, a result or an error shows it. Where a response
// repeats a key of 8 characters or more, [REDACTED] replaces it in everything that
// the client returns.
//
// # What is not documented
//
// The service is documented in part; docs/interface.md states in numbers, such as I-50,
// what is documented and what is not. What is documented is typed. What is not is
// read tolerantly where its meaning is documented, as each method's comment states,
// and, for rates, balance and invoices, kept as it came in a field Raw.
// [WithResponse] returns the envelope of any response.
//
// # Around the calls
//
// [NewCatalog] and [NewRatesCache] cache what many callers ask for. The methods of
// [CoinNetwork] and [ExchangeRates] check and convert amounts by it, before anything is
// sent. [Client.WaitWithdrawal] and its siblings poll until a withdrawal has ended.
// [Client.PrepareInvoice] opens the connection of the next invoice. [MemoryGuard] guards the
// orders of one process, and module sqlguard those of many. An [Observer], [WithLogger] and
// module otelgateway report calls, attempts and each [Drift] from docs/interface.md;
// [CallFromContext] names requests in a RoundTripper, which is the place for a rate limit.
// [FromEnv] and [APIKeyFile] are for settings and for keys that change.
//
// # Testing
//
// Package [github.com/cryptogw/gateway/gatewaytest] has a gateway to test against, with
// faults on demand.
package gateway

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/cryptogw/gateway/internal/attempt"
	"github.com/cryptogw/gateway/internal/endpoint"
	"github.com/cryptogw/gateway/internal/redact"
	"github.com/cryptogw/gateway/internal/retry"
	"github.com/cryptogw/gateway/internal/validate"
)

// Version is the version of this library: its tag without the v. The default
// User-Agent has it.
const Version = "0.1.0"

const (
	readIdleTimeout = 90 * time.Second

	// invoiceIdleTimeout keeps an invoice off a connection that the server is about
	// to close: that race is indistinguishable from a lost invoice.
	invoiceIdleTimeout = 2 * time.Second
)

// A Client calls the gateway. Make it with [New], once, and share it: it never
// changes and is safe for concurrent use. No way of printing it shows the key.
type Client struct {
	base      endpoint.Base
	key       redact.Secret
	keyring   *redact.Keyring
	cfg       *config
	observers []Observer
	breaker   *breaker

	// Functions, so that a dump by reflection reaches neither transports, which may hold
	// credentials, nor pooled buffers.
	reads, writes func() *attempt.Sender
	retrier       func() *retry.Retrier
	readers       func() *sync.Pool // of responseReaders
}

// New returns a client for the gateway at baseURL, such as
// "https://gateway.example/merchant"; its path, if it has one, stays in front of
// every route. It must be https, except for a loopback host or with [WithPlainHTTP].
//
// The key is at most 4,096 printable ASCII characters. It may be empty; calls that
// need one then fail before anything is sent. A bad argument or option is an
// [*ArgumentError].
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
	if reason := validate.APIKey(apiKey); reason != "" && apiKey != "" {
		return nil, badOption("apiKey", reason)
	}
	if apiKey != "" && cfg.keySource != nil {
		return nil, badOption("apiKey", "must be empty with WithAPIKeySource")
	}
	if cfg.http != nil {
		cfg.retry.AttemptTimeout = cmp.Or(cfg.retry.AttemptTimeout, cfg.http.Timeout)
		cfg.retry.InvoiceTimeout = cmp.Or(cfg.retry.InvoiceTimeout, cfg.http.Timeout)
	}
	cfg.retry = cfg.retry.withDefaults()
	return newClient(base, redact.NewSecret(apiKey), cfg), nil
}

func newClient(base endpoint.Base, key redact.Secret, cfg *config) *Client {
	reads, writes := cfg.senders()
	cfg.http = nil // it is not to be reached from the client: see reads and writes
	retrier, readers := retry.New(cfg.retry.limits()), newReaderPool()
	return &Client{
		base:      base,
		key:       key,
		keyring:   redact.NewKeyring(key),
		cfg:       cfg,
		observers: cfg.allObservers(),
		breaker:   &breaker{limit: cfg.breakAfter, warn: cfg.orderWarning(), circuits: map[string]*circuit{}},

		reads:   func() *attempt.Sender { return reads },
		writes:  func() *attempt.Sender { return writes },
		retrier: func() *retry.Retrier { return retrier },
		readers: func() *sync.Pool { return readers },
	}
}

// senders returns what sends the reads, and what sends the invoices.
func (cfg *config) senders() (reads, writes *attempt.Sender) {
	var transport http.RoundTripper
	if cfg.http != nil {
		transport = cfg.http.Transport // nothing else of it is used
	}
	if t, ok := transport.(*http.Transport); ok {
		transport = InvoiceTransport(t)
	}
	switch t := transport.(type) {
	case nil:
		own := attempt.NewSplit(invoiceIdleTimeout, readIdleTimeout)
		return attempt.NewReadSender(own.Shared, cfg.retry.AttemptTimeout), attempt.NewSender(own.Dedicated, cfg.retry.InvoiceTimeout)
	case *attempt.Split:
		return attempt.NewSender(t.Shared, cfg.retry.AttemptTimeout), attempt.NewSender(t.Dedicated, cfg.retry.InvoiceTimeout)
	default:
		return attempt.NewSender(t, cfg.retry.AttemptTimeout), attempt.NewSender(t, cfg.retry.InvoiceTimeout)
	}
}
