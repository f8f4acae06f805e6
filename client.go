// Package gateway is a client for a cryptocurrency payment gateway: coins and
// networks, exchange rates, balance, invoices and the inquiry of withdrawals.
//
// A [Client] is made once, with [New], and shared: it is safe for concurrent
// use and has a method for each endpoint of the service.
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
// Amounts are exact: they are read from the digits of the answer and written
// from their own digits, never through a float. An amount that is missing,
// null or malformed is an error that names its place, never zero.
//
// [Client.CreateInvoice] puts at most one invoice on the wire. When it fails,
// [OutcomeOf] says which of three things is true:
//
//   - [OutcomeNotSent]: this call sent no byte of it.
//   - [OutcomeRejected]: the service said no. This call created no invoice.
//   - [OutcomeUnknown]: it may exist. Look it up before anything else; until
//     then the client's [OrderGuard] refuses to send the order again.
//
// # Retries
//
// Every read is tried up to 3 times, each attempt for at most 15 seconds.
// [RetryPolicy] changes the numbers.
//
//   - Tried again: a connection that was refused, reset, cut or timed out, a
//     name server that did not answer, a body that broke off or does not
//     decompress, and the statuses 408, 425, 429, 500, 502 to 504, 520 to 524
//     and 529.
//   - Not tried again: a name that does not exist, a certificate or protocol
//     version that does not fit, a proxy that wants a password, a redirect, an
//     answer that is too large or not understood, and all other statuses.
//   - The wait before the n-th retry is drawn between 0 and 100 ms·2ⁿ⁻¹, after
//     429 and 503 between 0 and 1 s·2ⁿ⁻¹, and at most 5 s. A Retry-After is
//     waited for up to 30 s. One that is longer, and any wait past the
//     context's deadline, ends the call at once with the last answer or fault.
//   - All retries of a client share a budget, which successes refill, so that
//     a service in trouble gets few of them.
//
// An invoice is tried up to 3 times, for 60 seconds each, and again only while
// it is proved that nothing of it was read for sending; never after an answer.
//
// # Errors
//
// Errors are few: [*ArgumentError] (refused here, nothing sent), [*APIError]
// (the service said no), [*DecodeError] (an answer that is not understood),
// [*TransportError] (no usable answer), [*OutcomeUnknownError] (an invoice
// that may exist), for waiting [*WithdrawalFailedError] and [*WaitError], and
// for amounts [*LimitError] (the catalogue does not allow it, nothing sent).
// What callers branch on has a sentinel, such as [ErrRateLimited].
// [SafeToRetry] answers for all of them.
//
// # The key
//
// The key is sent where the interface says, and shown nowhere: no way of
// printing a client, an option, a result or an error shows it. Where the
// service itself repeats a key of 8 characters or more, [REDACTED] stands in
// everything that the client hands out.
//
// # What the service does not say
//
// The service is described in part only. What it documents is typed. What it
// does not is read tolerantly where its meaning is documented, as each method
// says, and, for rates, balance and invoices, kept as it came in a field Raw.
// [WithResponse] gives the envelope of any answer.
//
// # Around the calls
//
// What merchants write around a client is here:
//
//   - [Cache] keeps what was loaded last: many callers share one load, and when
//     that fails they get the old value. [ExchangeRates] belong into one.
//     [Client.Catalog] is a cache of the listing, with lookups that cost nothing.
//   - [CoinNetwork.CheckWithdrawal], [CoinNetwork.CheckPayment] and
//     [CoinNetwork.NetWithdrawal] say before anything is sent what the catalogue
//     does not allow; a [*LimitError] has the nearest amount that it does.
//   - [ExchangeRates.ToCoin] converts a price and rounds up, so that a merchant
//     never asks for too little; [ExchangeRates.ToFiat] says what an amount is
//     worth, rounded half to even.
//   - [Client.WaitWithdrawal], [Client.WatchWithdrawal] and, for many at once,
//     [Client.WaitWithdrawals] ask until a withdrawal has ended.
//   - An [Observer] is told of every attempt, and of [Drift]: a place where
//     an answer differs from the interface. [WithLogger] writes the same to a
//     log. [OperationFromContext] names requests in a RoundTripper, which is
//     also the place for tracing, a rate limit or a circuit breaker.
//   - [FromEnv] makes a client of what the environment says, and
//     [WithAPIKeySource] asks for the key when it is needed.
//
// The package prints nothing, keeps no global state and has no goroutines in
// the background. Package gatewaytest has a gateway to test against.
package gateway

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"sync"
)

// Version is the version of this library.
const Version = "0.1.0"

// Names of the operations, as they stand in errors, contexts, attempts and
// drift.
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
	base   base
	key    secret
	ring   *keyring
	cfg    *config
	budget *budget

	observers []Observer

	// errand is what the HTTP libraries are sent with: they run the attempts,
	// each of which makes its own request. Nobody changes it.
	errand *http.Request

	// These stand behind functions because they hold the key, or have buffers
	// with what was sent and what the service said.
	reads, writes func() *carrier
	readings      func() *sync.Pool
}

// New returns a client for the gateway at baseURL, such as
// "https://gateway.example/merchant"; the path, if there is one, stays in
// front of every route. It must be https, but for hosts on this machine or
// with [WithPlainHTTP].
//
// The key is at most 4,096 printable ASCII characters. It may be empty; calls
// that need one then fail before anything is sent.
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
	if apiKey != "" && cfg.keySource != nil {
		return nil, badOption("apiKey", "must be empty with WithAPIKeySource")
	}
	if cfg.http != nil {
		cfg.retry.AttemptTimeout = cmp.Or(cfg.retry.AttemptTimeout, cfg.http.Timeout)
		cfg.retry.InvoiceTimeout = cmp.Or(cfg.retry.InvoiceTimeout, cfg.http.Timeout)
	}
	cfg.retry = cfg.retry.withDefaults()
	reads := newCarrier(cfg.http, cfg.retry.AttemptTimeout, readIdle)
	writes := newCarrier(cfg.http, cfg.retry.InvoiceTimeout, writeIdle)
	cfg.http = nil // it is not to be reached from the client: see reads and writes
	readings := &sync.Pool{New: func() any { return &reading{} }}
	return &Client{
		base:   newBase(base),
		key:    newSecret(apiKey),
		ring:   newKeyring(newSecret(apiKey)),
		cfg:    cfg,
		budget: &budget{},

		observers: cfg.observers(),

		errand: &http.Request{URL: &url.URL{}, Header: http.Header{}},

		reads:    func() *carrier { return reads },
		writes:   func() *carrier { return writes },
		readings: func() *sync.Pool { return readings },
	}, nil
}

// A call says what is particular to one request.
type call struct {
	op    string
	route string    // as INTERFACE.md writes it; each {name} is filled with an argument
	args  [2]string // for the route, in its order
	query []param   // those with an empty value are left out
	id    string    // the identifier that the record in the answer must have; empty for any
	key   keyPlace
	json  bool    // whether a read says that it is JSON
	write payload // what is posted; nil for a read
}

type param struct{ name, value string }

// A payload is the body of a write.
type payload interface {
	check() (name, reason string)
	order() string
	encode(key string, format InvoiceFormat) []byte
}

// A keyPlace is where the key goes: INTERFACE.md, "Authentication".
type keyPlace int8

const (
	keyNowhere keyPlace = iota // not shown to be needed
	keyInHeader
	keyInBody
)

// do makes a call: the only way from a method to the wire and back.
func do[T any](ctx context.Context, c *Client, what call, read reader[T], opts []CallOption) (T, error) {
	x := &exchangeOf[T]{exchange: exchange{client: c, call: what}, read: read}
	x.answer = x
	err := x.newRequest(ctx, opts)
	if err == nil {
		err = x.send()
	}
	if err != nil {
		var none T
		return none, err
	}
	return x.result, nil
}

// An exchangeOf is an exchange with the result that is read from its answer.
type exchangeOf[T any] struct {
	exchange
	read   reader[T]
	result T
}

func (x *exchangeOf[T]) open(d *decoder) (e envelope, refused bool) {
	x.result, e, refused = open(d, x.read)
	return e, refused
}

// checkCall says what is wrong with what every call begins with, or "".
func (c *Client) checkCall(ctx context.Context) (name, reason string) {
	switch {
	case c == nil || c.cfg == nil:
		return "client", "was not made by New"
	case ctx == nil:
		return "ctx", "must not be nil"
	default:
		return "", ""
	}
}
