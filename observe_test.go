package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A recorder records the events of an observer.
type recorder struct {
	starts, ends []gateway.Call
	attempts     []gateway.Attempt
	drifts       []gateway.Drift
}

func (w *recorder) option() gateway.Option {
	return gateway.WithObserver(gateway.Observer{
		Start: func(_ context.Context, c gateway.Call) context.Context {
			w.starts = append(w.starts, c)
			return nil
		},
		End:     func(_ context.Context, c gateway.Call) { w.ends = append(w.ends, c) },
		Attempt: func(_ context.Context, a gateway.Attempt) { w.attempts = append(w.attempts, a) },
		Drift:   func(_ context.Context, d gateway.Drift) { w.drifts = append(w.drifts, d) },
	})
}

// Each call has one start and one end, and each attempt one event. The body of a refusal is not checked for drift.
func TestObserver(t *testing.T) {
	t.Parallel()
	const merchant = "shop of [REDACTED]"
	forEach(t, "the events", func(t *testing.T, s subject) {
		refusal := gateway.OutcomeNotSent
		if s.write {
			refusal = gateway.OutcomeRejected
		}
		for _, tt := range []struct {
			status   int // 0 for a context that has ended
			body     string
			attempts int
			outcome  gateway.Outcome
		}{
			{s.status, s.body(), 1, gateway.OutcomeSucceeded},
			{404, `{"message":"No.","result":[],"meta":{},"odd":1}`, 1, refusal},
			{500, refused("No."), 1, map[bool]gateway.Outcome{true: unknown, false: notSent}[s.write]},
			{0, "", 0, gateway.OutcomeNotSent},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.status == 0 {
					cancel()
				}
				var w recorder
				c := newClient(t, "http://localhost", once(), w.option(), through(func(req *http.Request) (*http.Response, error) {
					time.Sleep(40 * time.Millisecond) // of the bubble
					call, ok := gateway.CallFromContext(req.Context())
					assert.True(t, ok)
					assert.Equal(t, w.starts, []gateway.Call{call}, "for tracing")
					return reply(tt.status, tt.body), nil
				}))
				_, err := s.call(ctx, c, gateway.WithMerchant("shop of "+canary))
				took := time.Duration(tt.attempts) * 40 * time.Millisecond
				assert.Equal(t, []gateway.Call{{Operation: s.op, Route: s.route, Merchant: merchant}}, w.starts)
				assert.Equal(t, []gateway.Call{{
					Operation: s.op, Route: s.route, Merchant: merchant, Attempts: tt.attempts, StatusCode: tt.status, Outcome: tt.outcome, Err: err, Duration: took,
				}}, w.ends)
				if s.write || err == nil {
					assert.Equal(t, tt.outcome, gateway.OutcomeOf(err))
				}
				require.Len(t, w.attempts, tt.attempts)
				for _, a := range w.attempts {
					assert.Equal(t, gateway.Attempt{Operation: s.op, Route: s.route, Number: 1, StatusCode: tt.status, Err: causeOf(err), Duration: took}, a)
				}
				assert.Empty(t, w.drifts)
			})
		}
	})
}

// Each attempt has its own error and the wait after it; the last one has the error of the call, and no wait.
func TestObserver_retries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w recorder
		p := scriptedClient(t, saysStatus(503, "Retry-After", "7"), brokenConnect, statusTrip(201, enveloped(strings.Replace(withdrawalJSON, requestID, "other", 1))))
		p.connect(t, w.option())
		err := withdrawal(t.Context(), p.client)
		require.ErrorIs(t, err, gateway.ErrResponseMismatch)
		require.Len(t, w.attempts, 3)
		for i, status := range []int{503, 0, 201} {
			wait := append(p.waits(), 0)[i]
			assert.Equal(t, gateway.Attempt{"withdrawal", w.attempts[i].Route, i + 1, status, w.attempts[i].Err, wait, 0}, w.attempts[i])
		}
		assert.EqualError(t, w.attempts[0].Err, `gateway: withdrawal: 503: "No."; retry after 7s`)
		assert.ErrorContains(t, w.attempts[1].Err, "connection refused")
		assert.Equal(t, err, w.attempts[2].Err)
	})
	synctest.Test(t, func(t *testing.T) {
		var w recorder
		p := scriptedClient(t, reset, saysStatus(422))
		p.connect(t, gateway.WithIdempotentOrders(), w.option())
		_, _ = p.client.CreateInvoice(t.Context(), order("A-17"))
		require.Len(t, w.attempts, 2)
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(w.attempts[1].Err), "the first attempt may have created an invoice")
	})
}

func withdrawal(ctx context.Context, c *gateway.Client) error {
	_, err := c.Withdrawal(ctx, requestID)
	return err
}

type tenantKey struct{}

// All code of the caller's that a call runs finds the call, and the values of the caller's context; but the source
// of the key, which must not find another merchant there.
func TestCallFromContext(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	want := gateway.Call{Operation: "create_invoice", Route: "/api/invoice/create", Merchant: "shop 1"}
	saw := func(ctx context.Context, where string) context.Context {
		seen[where]++
		call, ok := gateway.CallFromContext(ctx)
		assert.True(t, ok, where)
		assert.Equal(t, want, call, where)
		tenant := ctx.Value(tenantKey{})
		assert.Equal(t, where == "key source", tenant == nil, where)
		assert.True(t, tenant == nil || tenant == "tenant 1", where)
		return nil
	}
	guard := &flightGuard{
		begin: func(ctx context.Context) error { saw(ctx, "guard's Begin"); return nil },
		end:   func(ctx context.Context, _ gateway.OrderRecord) error { saw(ctx, "guard's End"); return nil },
	}
	c := clientWithKeySource(t, "http://localhost", func(ctx context.Context) (string, error) {
		saw(ctx, "key source")
		return canary, nil
	}, gateway.WithOrderGuard(guard), gateway.WithObserver(gateway.Observer{
		Start: func(ctx context.Context, c gateway.Call) context.Context {
			assert.Equal(t, want, c)
			return saw(ctx, "Start")
		},
		End:     func(ctx context.Context, _ gateway.Call) { saw(ctx, "End") },
		Attempt: func(ctx context.Context, _ gateway.Attempt) { saw(ctx, "Attempt") },
		Drift:   func(ctx context.Context, _ gateway.Drift) { saw(ctx, "Drift") },
	}), through(func(req *http.Request) (*http.Response, error) {
		saw(req.Context(), "RoundTrip")
		return reply(201, strings.Replace(enveloped(invoiceJSON), `{`, `{"x":1,`, 1)), nil
	}))
	_, err := c.CreateInvoice(context.WithValue(t.Context(), tenantKey{}, "tenant 1"), order("A-17"), gateway.WithMerchant("shop 1"))
	require.NoError(t, err)
	assert.Equal(t, map[string]int{
		"Start": 1, "End": 1, "Attempt": 1, "Drift": 1, "guard's Begin": 1, "guard's End": 1, "key source": 1, "RoundTrip": 1,
	}, seen)
	_, ok := gateway.CallFromContext(t.Context())
	assert.False(t, ok, "a context of no call")
}

func TestObserver_drift(t *testing.T) {
	t.Parallel()
	strange := func(in, at, member string) string { return strings.Replace(in, at, at+member+",", 1) }
	paid := func(old, new string) string { return enveloped(strings.Replace(withdrawalJSON, old, new, 1)) }
	pair := func(name, value string) string { return enveloped(written(pairFields, name, value)) }
	coinFirst := strings.Replace(written(pairFields, "coinId", ""), `"coin":`+coinJSON, `"coin":`+coinJSON+`,"coinId":"c"`, 1)
	const field, value, shape, mismatch = gateway.DriftUnknownField, gateway.DriftUnexpectedValue, gateway.DriftUnknownShape, gateway.DriftMismatch
	const noRates = `"soon" has no coin with a price in usd or eur; WithRatesDecoder reads another form`
	for _, tt := range []struct {
		name, subject, body string
		pointer             string // none for no drift
		kind                gateway.DriftKind
		reason              string
	}{
		{"nothing", "CoinNetworks", enveloped("[" + pairJSON + "]"), "", "", ""},
		{"a member of the envelope", "Balance", strange(enveloped(balanceJSON), `{`, `"traceId":7`), "/traceId", field, ""}, // I-6
		{"a member of the result", "CoinNetwork", enveloped(strange(pairJSON, `{`, `"tag":null`)), "/result/tag", field, ""},
		{"a member further within", "CoinNetwork", enveloped(strange(pairJSON, `"network":{`, `"a/b":[1]`)), "/result/network/a~1b", field, ""},
		{
			"a member of every record is reported once, where it comes first", "CoinNetworks",
			enveloped("[" + pairJSON + strings.Repeat(","+strange(pairJSON, `{`, `"tag":null`), 100) + "]"), "/result/1/tag", field, "",
		},
		{"a name in another case", "Withdrawal", paid(`{`, `{"STATUS":"FAILED",`), "/result/STATUS", field, ""},                       // I-8
		{"a status", "Withdrawal", paid("PENDING", "HELD"), "/result/status", gateway.DriftUnknownStatus, `"HELD" is not documented`}, // I-144
		{"a status in lower case", "Withdrawal", paid("PENDING", "pending"), "/result/status", value, `"pending" is documented in upper case`},
		{"a networkId of another network", "CoinNetwork", pair("networkId", `"2"`), "/result/networkId", mismatch, ""},                     // I-56, I-68
		{"a coinId of another coin, which comes after the coin", "CoinNetwork", enveloped(coinFirst), "/result/coinId", mismatch, ""},      // I-56, I-69
		{"another message", "Withdrawal", strings.Replace(enveloped(withdrawalJSON), "successful.", "done.", 1), "/message", value, ""},    // I-44
		{"an amount that is a number", "Withdrawal", paid(`"fee":"1.5"`, `"fee":1.5`), "/result/fee", value, ""},                           // I-54
		{"a time that cannot be read", "CoinNetwork", pair("created_at", `"today"`), "/result/created_at", value, `"today" is not a time`}, // I-53
		{"rates of no known shape", "ExchangeRates", enveloped(`"soon"`), "/result", shape, noRates},
		{"a documented field that is missing", "Withdrawal", paid(`"fee":"1.5",`, ""), "/result/fee", shape, "is missing"},
		{
			"another record than the requested one", "Withdrawal", paid(requestID, "other"),
			"/result/withdrawRequestId", mismatch, `"other" is another record than the requested one`,
		},
		{
			"a record that was skipped, and the same of others once", "CoinNetworks", // I-52
			enveloped("[" + pairJSON + strings.Repeat(","+written(pairFields, "depositable", "null"), 3) + "]"),
			"/result/1/depositable", shape, "is null, not a boolean",
		},
		{"a page of HTML is no drift", "Withdrawal", "<html>", "", "", ""},
		{"a truncated response is no drift", "Withdrawal", enveloped(withdrawalJSON)[:100], "", "", ""},
		{"the key is not reported", "Withdrawal", paid(`{`, `{"`+canary+`":1,`), "/result/[REDACTED]", field, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var w recorder
			s := subjectNamed(tt.subject)
			_, _ = s.call(t.Context(), cannedClient(t, s.status, tt.body, w.option()))
			var want []gateway.Drift
			if tt.pointer != "" {
				want = []gateway.Drift{{s.op, tt.pointer, tt.kind, tt.reason}}
			}
			assert.Equal(t, want, w.drifts)
			assert.Len(t, w.attempts, 1)
		})
	}
}

func TestWithLogger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		withoutTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime}))
		var w recorder
		p := scriptedClient(t, saysStatus(503, "Retry-After", "7"), statusTrip(201, strings.Replace(enveloped(withdrawalJSON), `{`, `{"`+canary+`":1,`, 1)))
		p.connect(t, gateway.WithLogger(logger), w.option(), gateway.WithDefaults(gateway.WithMerchant("north")))
		require.NoError(t, withdrawal(t.Context(), p.client))

		const route = `"operation":"withdrawal","route":"/api/withdrawal/inquiry/{withdrawRequestId}"`
		assert.Equal(t, []string{
			`{"level":"WARN","msg":"gateway: attempt will be retried",` + route +
				`,"attempt":1,"status":503,"duration":0,"wait":7000000000,"error":"gateway: withdrawal: 503: \"No.\"; retry after 7s"}`,
			`{"level":"WARN","msg":"gateway: drift","operation":"withdrawal","kind":"unknown field","pointer":"/[REDACTED]"}`,
			`{"level":"DEBUG","msg":"gateway: attempt",` + route + `,"attempt":2,"status":201,"duration":0,"wait":0}`,
			`{"level":"DEBUG","msg":"gateway: call",` + route + `,"merchant":"north","attempts":2,"status":201,"outcome":"succeeded","duration":7000000000}`,
		}, strings.Split(strings.TrimSpace(out.String()), "\n"))
		assert.Len(t, w.attempts, 2, "both the logger and the observer receive events")
	})
}

// Without a logger, the default one gets the warnings and errors, but not those of retried attempts, whatever its
// level. The error of a call is for the caller to log. Not parallel, because it changes the default logger.
func TestNew_defaultLogger(t *testing.T) {
	const (
		drift     = "level=WARN msg=\"gateway: drift\"\n"
		mayExist  = "level=WARN msg=\"gateway: an invoice may exist: look the order up\"\n"
		notStored = "level=ERROR msg=\"gateway: the order guard could not record the outcome\"\n"
	)
	guarded := func(g *recordingGuard) []gateway.Option { return []gateway.Option{gateway.WithOrderGuard(g)} }
	for _, tt := range []struct {
		name, call string
		opts       []gateway.Option
		status     int
		body, want string
	}{
		{"a call that succeeds", "Withdrawal", nil, 201, enveloped(withdrawalJSON), ""},
		{"drift", "Withdrawal", nil, 201, strings.Replace(enveloped(withdrawalJSON), `{`, `{"x":1,`, 1), drift},
		{"a record that is skipped", "CoinNetworks", nil, 200, enveloped("[" + pairJSON + ",1]"), drift},
		{"a read that fails", "Withdrawal", nil, 500, refused("No."), ""},
		{"an invoice that is refused", "CreateInvoice", nil, 422, refused("No."), ""},
		{"an invoice that may exist", "CreateInvoice", nil, 500, refused("No."), mayExist},
		{"an invoice that may exist, and drift", "CreateInvoice", nil, 200, `{"message":"No."}`, drift + mayExist},
		{"an order that was unknown before", "CreateInvoice", guarded(&recordingGuard{lease: gateway.Lease{State: gateway.OrderUnknown}}), 0, "", mayExist},
		{"a guard that cannot say", "CreateInvoice", guarded(&recordingGuard{fails: errOfTheGuard}), 0, "", ""},
		{"an outcome that cannot be recorded", "CreateInvoice", guarded(new(recordingGuard)), 200, enveloped(invoiceJSON), notStored},
		{"an attempt that is retried", "Withdrawal", []gateway.Option{gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 2, BaseDelay: time.Microsecond, MaxDelay: time.Microsecond})}, 500, "{}", ""},
		{"a logger that discards", "Withdrawal", []gateway.Option{gateway.WithLogger(slog.New(slog.DiscardHandler))}, 200, "{}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			before := slog.Default()
			defer slog.SetDefault(before)
			c := cannedClient(t, tt.status, tt.body, append([]gateway.Option{gateway.WithOrderGuard(new(gateway.MemoryGuard))}, tt.opts...)...)
			slog.SetDefault(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: onlyMessage})))
			_, _ = subjectNamed(tt.call).call(t.Context(), c)
			assert.Equal(t, tt.want, out.String())
		})
	}
}

// onlyMessage leaves the level and the message of a record.
func onlyMessage(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.LevelKey || a.Key == slog.MessageKey {
		return a
	}
	return slog.Attr{}
}

// Observers run in the order of their options, and at the end in reverse, each with
// the context that the starts before have made.
func TestWithObserver_adds(t *testing.T) {
	t.Parallel()
	type key struct{}
	var log []string
	named := func(name string) gateway.Option {
		note := func(ctx context.Context, event string) context.Context {
			text, _ := ctx.Value(key{}).(string)
			log = append(log, fmt.Sprintf("%s %s %q", event, name, text))
			return context.WithValue(ctx, key{}, text+name)
		}
		return gateway.WithObserver(gateway.Observer{
			Start:   func(ctx context.Context, _ gateway.Call) context.Context { return note(ctx, "start") },
			Attempt: func(ctx context.Context, _ gateway.Attempt) { note(ctx, "attempt") },
			End:     func(ctx context.Context, _ gateway.Call) { note(ctx, "end") },
		})
	}
	returnsNil := gateway.WithObserver(gateway.Observer{Start: func(context.Context, gateway.Call) context.Context { return nil }})
	c := cannedClient(t, 201, enveloped(withdrawalJSON), named("a"), gateway.WithObserver(gateway.Observer{}), returnsNil, named("b"))
	require.NoError(t, withdrawal(t.Context(), c))
	assert.Equal(t, []string{`start a ""`, `start b "a"`, `attempt a "ab"`, `attempt b "ab"`, `end b "ab"`, `end a "ab"`}, log)
}

// recordEnds returns an observer that appends the calls that have ended.
func recordEnds(ends *[]gateway.Call) gateway.Option {
	return gateway.WithObserver(gateway.Observer{End: func(_ context.Context, c gateway.Call) { *ends = append(*ends, c) }})
}

// The logger remembers 1,024 places of drift. One more, and all are logged again. A place is logged once, whatever its
// value, and is the same in each record of a listing.
// I-44
func TestWithLogger_driftOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	body := ""
	c := newClient(t, "http://localhost", gateway.WithLogger(slog.New(slog.NewTextHandler(&out, nil))), through(func(*http.Request) (*http.Response, error) {
		return reply(201, body), nil
	}))
	logged := func(call int) int {
		var members strings.Builder
		for i := range 64 {
			fmt.Fprintf(&members, `"x%d-%d":0,`, call, i)
		}
		body = enveloped(`{` + members.String() + withdrawalJSON[1:])
		out.Reset()
		require.NoError(t, withdrawal(t.Context(), c))
		return strings.Count(out.String(), "gateway: drift")
	}
	for call := range 16 {
		require.Equal(t, 64, logged(call))
	}
	assert.Zero(t, logged(0), "all 1,024 are remembered")
	assert.Equal(t, 64, logged(16), "one place more than is remembered")
	assert.Equal(t, 64, logged(0))

	out.Reset()
	for odd := range 8 { // the record that differs
		records := slices.Repeat([]string{pairJSON}, 8)
		records[odd] = written(pairFields, "created_at", fmt.Sprintf(`"day %d"`, odd))
		body = listing(records...)
		_, err := c.CoinNetworks(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, 1, strings.Count(out.String(), `kind="unexpected value"`), out.String())
	assert.Equal(t, 1, strings.Count(out.String(), "gateway: drift"), out.String())
}
