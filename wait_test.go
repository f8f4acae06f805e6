package gateway_test

import (
	"context"
	"errors"
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

// withdrawalIn responds with the documented withdrawal, in another status.
func withdrawalIn(status string) tripper { return withdrawalWith("PENDING", status) }

// withdrawalWith responds with the documented withdrawal, in which texts are replaced.
func withdrawalWith(oldnew ...string) tripper {
	return statusTrip(201, enveloped(strings.NewReplacer(oldnew...).Replace(withdrawalJSON)))
}

// unreadableIn responds with a withdrawal in a status, whose fee cannot be read.
func unreadableIn(status string) tripper {
	return withdrawalWith("PENDING", status, `"fee":"1.5"`, `"fee":null`)
}

const page = "<html><body>Just a moment...</body></html>"

// Every poll of a wait has the options of the call, and so has the error of a context that ends.
func TestClient_WaitWithdrawal_callOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const other = "key-of-another-merchant"
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errors.New("revoked " + other)) })
		keys := map[string]bool{}
		c := newClient(t, "https://gateway.test", through(func(req *http.Request) (*http.Response, error) {
			keys[req.Header.Get("X-Api-Key")] = true
			return withdrawalIn("PENDING")(req)
		}))
		_, err := c.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{}, gateway.WithAPIKey(other))
		assert.Equal(t, map[string]bool{other: true}, keys)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, "revoked [REDACTED]")
	})
}

// A bad character in a text that nobody needs does not keep a wait from its end, and one in the destination does not
// hide the status.
func TestClient_WaitWithdrawal_character(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			status, old, bad string
			want             error // nil for the withdrawal
		}{
			{"COMPLETED", `{`, `{"note":"\ud83d",`, nil},
			{"COMPLETED", `{`, "{\"note\":\"caf\xe9\",", nil},
			{"FAILED", `{`, `{"note":"\ud83d",`, gateway.ErrWithdrawalFailed},
			{"FAILED", `TXYZ`, `TX\ud83d`, gateway.ErrWithdrawalFailed},
			{"COMPLETED", `TXYZ`, "TX\xff", gateway.ErrInvalidArgument},
		} {
			p := scriptedClient(t, withdrawalWith("PENDING", tt.status, tt.old, tt.bad))
			got, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
			assert.Len(t, p.at, 1, "the wait has ended")
			if tt.want == nil {
				require.NoError(t, err)
				assert.Equal(t, "TXYZ", got.Destination)
				continue
			}
			require.Error(t, err)
			assert.Nil(t, got)
			assert.Equal(t, gateway.WithdrawalStatus(tt.status), gateway.WithdrawalStatusOf(err))
			if tt.status == "FAILED" {
				assert.ErrorIs(t, err, tt.want)
			} else {
				assert.ErrorContains(t, err, "/result/destination: \"TX\ufffd\" has a character that is not Unicode")
			}
		}
	})
}

// The waits lie between the intervals of the options, and grow from the first to the second.
// I-151
func TestClient_WaitWithdrawal_Intervals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		options     gateway.WaitOptions
		least, most time.Duration
	}{
		{"the defaults", gateway.WaitOptions{}, 2 * time.Second, 30 * time.Second},
		{"both are set", gateway.WaitOptions{MinInterval: time.Second, MaxInterval: time.Minute}, time.Second, time.Minute},
		{"MinInterval alone, above the default of the other", gateway.WaitOptions{MinInterval: time.Minute}, time.Minute, time.Minute},
		{"MaxInterval alone, below the default of the other", gateway.WaitOptions{MaxInterval: time.Second}, time.Second, time.Second},
		{"both are the same", gateway.WaitOptions{MinInterval: time.Second, MaxInterval: time.Second}, time.Second, time.Second},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			p := paced(t, gateway.RetryPolicy{}, withdrawalIn("PENDING"))
			_, err := p.client.WaitWithdrawal(lasting(t, 1000*tt.most), requestID, tt.options)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			waits := p.waits()
			longest := time.Duration(0)
			for _, wait := range waits {
				assert.GreaterOrEqual(t, wait, tt.least)
				assert.LessOrEqual(t, wait, tt.most)
				longest = max(longest, wait)
			}
			assert.LessOrEqual(t, waits[0], tt.least*3/2, "the first is short")
			assert.GreaterOrEqual(t, longest, tt.most*9/10, "they grow")
		})
	}
}

// A Retry-After is a floor under the next wait, up to an hour.
// I-161
func TestClient_WaitWithdrawal_RetryAfter(t *testing.T) {
	t.Parallel()
	for after, most := range map[string]time.Duration{"600": 10 * time.Minute, "999999999": time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			p := paced(t, gateway.RetryPolicy{}, saysStatus(429, "Retry-After", after), withdrawalIn("PENDING"), withdrawalIn("COMPLETED"))
			_, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
			require.NoError(t, err)
			waits := p.waits()
			require.Len(t, waits, 2)
			assert.Equal(t, most, waits[0])
			assert.LessOrEqual(t, waits[1], 30*time.Second, "it holds for one wait")
		})
	}
}

// A wait ends with COMPLETED, in any case of letters, and only the service itself can end it otherwise.
// I-12, I-139, I-141, I-144, I-171
func TestClient_WaitWithdrawal(t *testing.T) {
	t.Parallel()
	weather := map[string]tripper{
		"it is pending":                               withdrawalIn("pending"),
		"a status that is not named":                  withdrawalIn("PROCESSING"),
		"a status that begins as a final one":         withdrawalIn("FAILED?"),
		"a status that is a part of a final one":      withdrawalIn("COMPLETE"),
		"a status that is null":                       withdrawalWith(`"PENDING"`, `null`),
		"an unreadable fee":                           unreadableIn("PENDING"),
		"no fee":                                      withdrawalWith(`"fee":"1.5",`, ``),
		"an unknown field":                            withdrawalWith(`"fee"`, `"txHash":null,"fee"`),
		"another withdrawal":                          withdrawalWith(requestID, "another"),
		"another withdrawal, which cannot be read":    withdrawalWith("PENDING", "COMPLETED", `"fee":"1.5"`, `"fee":null`, requestID, "another"),
		"an empty array":                              statusTrip(201, enveloped("[]")),
		"the connection is lost":                      brokenConnect,
		"no content":                                  statusTrip(204, ""),
		"half a body":                                 statusTrip(201, enveloped(withdrawalJSON)[:50]),
		"a body that is cut":                          statusTrip(201, enveloped(withdrawalJSON), "Content-Length", "9999"),
		"a redirect":                                  statusTrip(302, "", "Location", "https://login.example/"),
		"an error text in a 2xx without a result":     statusTrip(200, `{"message":"Maintenance.","meta":{}}`),
		"an error text in a 2xx with null":            statusTrip(200, `{"message":"Maintenance.","result":null,"meta":{}}`),
		"a compression that nobody asked for":         statusTrip(201, "\x1f\x8b\x08", "Content-Encoding", "br"),
		"403 with a message, as an edge writes it":    statusTrip(403, `{"message":"Forbidden"}`),
		"404 in the first minute":                     saysStatus(404),
		"401 in the first minute":                     saysStatus(401),
		"a circuit breaker of the caller's transport": brokenOff,
	}
	for _, status := range []int{200, 400, 401, 403, 404, 410, 422, 500, 530} {
		weather[fmt.Sprint("a page of a CDN with ", status)] = statusTrip(status, page)
	}
	for _, status := range []int{402, 405, 408, 409, 418, 429, 451, 500, 501, 507} {
		weather[fmt.Sprint("the envelope with ", status)] = saysStatus(status)
	}
	for name, response := range weather {
		inBubble(t, name, func(t *testing.T) {
			p := paced(t, gateway.RetryPolicy{MaxAttempts: 1}, withdrawalIn("PENDING"), response, response, withdrawalIn("completed"))
			got, err := p.client.WaitWithdrawal(lasting(t, 24*time.Hour), requestID, gateway.WaitOptions{})
			assertInvariants(t, got, err)
			require.NoError(t, err)
			assert.Equal(t, gateway.WithdrawalCompleted, got.Status)
			assert.Len(t, p.at, 4)
		})
	}
}

// The service's own refusal ends a wait for a withdrawal that was never seen: 404 after a minute, and others at once.
func TestClient_WaitWithdrawal_refused(t *testing.T) {
	t.Parallel()
	const detail = `{"detail":[{"loc":["path"],"msg":"not a UUID","input":"x"}]}`
	for _, tt := range []struct {
		status   int
		body     string
		after    time.Duration
		sentinel error // nil for any
	}{
		{400, refused("No."), 0, nil},
		{400, `{"statusCode":400,"message":["withdrawRequestId must be a UUID"],"error":"Bad Request"}`, 0, nil},
		{401, refused("x-api-key header is required"), 0, gateway.ErrMissingAPIKey},
		{401, `{"error":"Unauthorized"}`, 0, gateway.ErrUnauthorized},
		{403, refused("Merchant is blocked."), 0, gateway.ErrForbidden},
		{404, refused("No such request."), time.Minute, gateway.ErrNotFound},
		{404, `{"title":"Not Found","status":404}`, time.Minute, nil},
		{410, `{"type":"about:blank","title":"Gone","detail":"It was deleted."}`, 0, nil},
		{422, detail, 0, nil},
	} {
		inBubble(t, fmt.Sprint(tt.status, " ", tt.body), func(t *testing.T) {
			p := paced(t, gateway.RetryPolicy{MaxAttempts: 1}, statusTrip(tt.status, tt.body))
			got, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
			assertInvariants(t, got, err)
			assertGivenUp(t, err, tt.status, "")
			assert.GreaterOrEqual(t, time.Since(p.begun), tt.after)
			assert.Less(t, time.Since(p.begun), tt.after+30*time.Second+1)
			assert.True(t, tt.sentinel == nil || errors.Is(err, tt.sentinel))
		})
	}
}

// Half a refusal ends no wait, even for a withdrawal that was never seen.
// I-171
func TestClient_WaitWithdrawal_halfRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, "400", func(t *testing.T) {
		half := statusTrip(400, `{"message":"No.","result":`)
		p := paced(t, gateway.RetryPolicy{MaxAttempts: 1}, half, withdrawalIn("COMPLETED"))
		_, err := p.client.WaitWithdrawal(lasting(t, time.Hour), requestID, gateway.WaitOptions{})
		assert.NoError(t, err)
	})
}

// assertGivenUp asserts that a refusal has ended a wait, and which status was seen last.
func assertGivenUp(t *testing.T, err error, status int, seen gateway.WithdrawalStatus) {
	t.Helper()
	assert.Equal(t, seen, as[*gateway.WaitError](t, err).Status)
	refusal := as[*gateway.APIError](t, err)
	assert.Equal(t, status, refusal.StatusCode)
	assert.NotEmpty(t, refusal.Message)
}

// A withdrawal that was seen is given up only after a minute in which the service refuses, and last.
func TestClient_WaitWithdrawal_refusedOnceSeen(t *testing.T) {
	t.Parallel()
	no, pending, down, unreadable := saysStatus(401), withdrawalIn("PENDING"), statusTrip(502, page), unreadableIn("PENDING")
	type span struct {
		until    time.Duration // since the first poll
		response tripper
	}
	for _, tt := range []struct {
		name  string
		spans []span
		after time.Duration // 0 for a wait that ends with COMPLETED
	}{
		{"it is refused for a minute", []span{{time.Second, pending}, {time.Hour, no}}, time.Minute},
		{"it is refused for less", []span{{time.Second, pending}, {59 * time.Second, no}}, 0},
		{"it is refused twice for less", []span{{time.Second, pending}, {50 * time.Second, no}, {80 * time.Second, pending}, {130 * time.Second, no}}, 0},
		{"it is refused twice for less, around a field that cannot be read", []span{{time.Second, pending}, {50 * time.Second, no}, {80 * time.Second, unreadable}, {130 * time.Second, no}}, 0},
		{"the service is down in between", []span{{time.Second, pending}, {20 * time.Second, no}, {10 * time.Minute, down}, {time.Hour, no}}, 10 * time.Minute},
		{"the service is down last", []span{{time.Second, pending}, {50 * time.Second, no}, {10 * time.Minute, down}}, 0},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			begun := time.Now()
			c := newClient(t, "http://localhost", once(), through(func(req *http.Request) (*http.Response, error) {
				for _, s := range tt.spans {
					if time.Since(begun) < s.until {
						return s.response(req)
					}
				}
				return withdrawalIn("COMPLETED")(req)
			}))
			got, err := c.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{MinInterval: 2 * time.Second, MaxInterval: 2 * time.Second})
			assertInvariants(t, got, err)
			if tt.after == 0 {
				require.NoError(t, err)
				return
			}
			assertGivenUp(t, err, 401, "PENDING")
			assert.InDelta(t, tt.after, time.Since(begun), float64(4*time.Second))
		})
	}
}

// FAILED ends a wait, and so does a status that somebody has named as final: what it means is for the caller to know.
// I-140, I-143
func TestClient_WaitWithdrawal_final(t *testing.T) {
	t.Parallel()
	const name = `gateway: waiting for withdrawal "` + requestID + `": last seen `
	named := gateway.WaitOptions{Final: []gateway.WithdrawalStatus{"CANCELED", "paid"}}
	for _, tt := range []struct {
		name     string
		options  gateway.WaitOptions
		response tripper
		last     gateway.WithdrawalStatus // whose record could be read
		text     string
		is       error
	}{
		{"FAILED", gateway.WaitOptions{}, withdrawalIn("FAILED"), "FAILED", `"FAILED", polls: 4: the service reports FAILED`, gateway.ErrWithdrawalFailed},
		{"FAILED in another case", gateway.WaitOptions{}, withdrawalIn("Failed"), "FAILED", `"FAILED", polls: 4: the service reports FAILED`, gateway.ErrWithdrawalFailed},
		{"one of the options", named, withdrawalIn("CANCELED"), "CANCELED", `"CANCELED", polls: 4: `, gateway.ErrFinalStatus},
		{"one of the options, in another case", named, withdrawalIn("Canceled"), "Canceled", `"Canceled", polls: 4: `, gateway.ErrFinalStatus},
		{"a final status beside a field that cannot be read", named, unreadableIn("CANCELED"), "PENDING", `"CANCELED", polls: 4: `, gateway.ErrFinalStatus},
		{"FAILED beside a field that cannot be read", gateway.WaitOptions{}, unreadableIn("FAILED"), "PENDING", `"FAILED", polls: 4: `, gateway.ErrWithdrawalFailed},
		{"COMPLETED beside a field that cannot be read", gateway.WaitOptions{}, unreadableIn("COMPLETED"), "PENDING", `"COMPLETED", polls: 4: `, nil},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			p := scriptedClient(t, withdrawalIn("PENDING"), withdrawalIn("CANCEL"), withdrawalIn("PENDING"), tt.response)
			got, err := p.client.WaitWithdrawal(lasting(t, 24*time.Hour), requestID, tt.options)
			assertInvariants(t, got, err)
			wait := as[*gateway.WaitError](t, err) // because nobody has said that it is paid
			require.NotNil(t, wait.Last)
			assert.Equal(t, tt.last, wait.Last.Status)
			assert.Contains(t, err.Error(), name+tt.text)
			assert.Equal(t, wait.Status, gateway.WithdrawalStatusOf(err))
			assert.False(t, gateway.SafeToRetry(err))
			assertSentinels(t, err, tt.is)
		})
	}
}

// One poll ends with a final status, and a refusal does not end the program's own wait.
func TestClient_PollWithdrawal(t *testing.T) {
	t.Parallel()
	options := gateway.WaitOptions{
		Final:   []gateway.WithdrawalStatus{"CANCELED"},
		Changed: func(*gateway.Withdrawal) { panic("is not called") },
	}
	for _, tt := range []struct {
		name     string
		response tripper
		over     bool
		ended    bool                     // a *WaitError
		seen     gateway.WithdrawalStatus // of the withdrawal; empty for an error
		is       error                    // nil for any
	}{
		{"it is pending", withdrawalIn("PENDING"), false, false, "PENDING", nil},
		{"its status is unknown", withdrawalIn("ON_HOLD"), false, false, "ON_HOLD", nil},
		{"it is completed", withdrawalIn("COMPLETED"), true, false, "COMPLETED", nil},
		{"it has failed", withdrawalIn("FAILED"), true, true, "", gateway.ErrWithdrawalFailed},
		{"it has failed, and another field cannot be read", unreadableIn("FAILED"), true, true, "", gateway.ErrWithdrawalFailed},
		{"it has a status that is named as final", withdrawalIn("CANCELED"), true, true, "", gateway.ErrFinalStatus},
		{"a page", statusTrip(403, page), false, false, "", gateway.ErrForbidden},
		{"the connection is lost", brokenConnect, false, false, "", nil},
		{"it is not found", saysStatus(404), false, true, "", gateway.ErrNotFound},
		{"it is refused", saysStatus(401), false, true, "", gateway.ErrUnauthorized},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			p := paced(t, gateway.RetryPolicy{MaxAttempts: 1}, tt.response)
			got, over, err := p.client.PollWithdrawal(t.Context(), requestID, options)
			assertInvariants(t, got, err)
			assert.Equal(t, tt.over, over)
			assert.Len(t, p.at, 1)
			_, ended := errors.AsType[*gateway.WaitError](err)
			assert.Equal(t, tt.ended, ended, "%v", err)
			if tt.seen == "" {
				require.Error(t, err)
				assert.True(t, tt.is == nil || errors.Is(err, tt.is), "%v", err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.seen, got.Status)
		})
	}
	c := newClient(t, "http://localhost")
	_, over, err := c.PollWithdrawal(t.Context(), "..", gateway.WaitOptions{})
	assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	assert.True(t, over, "it is not a matter of time")
	_, over, err = c.PollWithdrawal(cancelledContext(), requestID, gateway.WaitOptions{})
	assert.ErrorIs(t, err, context.Canceled)
	assert.False(t, over)
}

// The error at the end of the context has the withdrawal as it was last seen, and the last failure.
func TestClient_WaitWithdrawal_ContextEnds(t *testing.T) {
	t.Parallel()
	const name = `gateway: waiting for withdrawal "` + requestID + `": `
	hangs := func(*http.Request) (*http.Response, error) {
		time.Sleep(2 * time.Hour)
		return nil, errors.New("closed")
	}
	for _, tt := range []struct {
		name      string
		responses trips
		last      gateway.WithdrawalStatus
		fault     bool
		begins    string
	}{
		{"its status is unknown", trips{withdrawalIn("ON_HOLD")}, "ON_HOLD", false, name + `last seen "ON_HOLD", polls: `},
		{"it is never seen", trips{saysStatus(500)}, "", true, name + "never seen, polls: "},
		{"the service goes down", trips{withdrawalIn("PENDING"), saysStatus(502)}, "PENDING", true, name + `last seen "PENDING", polls: `},
		{"a poll lasts until then", trips{withdrawalIn("PENDING"), hangs}, "PENDING", false, name + `last seen "PENDING", polls: 2: `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(lasting(t, time.Hour))
					defer cancel()
					if errors.Is(cause, context.Canceled) {
						time.AfterFunc(time.Minute, cancel)
					}
					p := paced(t, gateway.RetryPolicy{MaxAttempts: 1}, tt.responses...)
					got, err := p.client.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{})
					assertInvariants(t, got, err)
					assert.ErrorIs(t, err, cause)
					assert.True(t, strings.HasPrefix(err.Error(), tt.begins), err.Error())
					wait := as[*gateway.WaitError](t, err)
					assert.Equal(t, len(p.at), wait.Polls)
					assert.Equal(t, requestID, wait.WithdrawRequestID)
					assert.Equal(t, tt.last, wait.Status)
					assert.True(t, wait.Last == nil && tt.last == "" || wait.Last.Status == tt.last)
					assert.Equal(t, tt.fault, wait.Fault != nil)
					assert.Equal(t, tt.fault, strings.Contains(err.Error(), "(last fault: withdrawal: 50"), err.Error())
				})
			}
		})
	}
}

func TestClient_WaitWithdrawal_Arguments(t *testing.T) {
	t.Parallel()
	c := newClient(t, "http://localhost", neverSends())
	for _, wrong := range []gateway.WaitOptions{
		{MinInterval: -1},
		{MaxInterval: -1},
		{MinInterval: 2 * time.Second, MaxInterval: time.Second},
		{MinInterval: 2},
		{MaxInterval: 30},
		{MaxInterval: 24*time.Hour + 1},
		{Final: []gateway.WithdrawalStatus{"PENDING"}},
		{Final: []gateway.WithdrawalStatus{""}},
	} {
		got, err := c.WaitWithdrawal(t.Context(), requestID, wrong)
		assertInvariants(t, got, err)
		assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
	}
	keyless, err := gateway.New("http://localhost", "", gateway.WithoutAPIKey(), neverSends())
	require.NoError(t, err)
	for _, tt := range []struct {
		ctx    context.Context
		client *gateway.Client
		id     string
		want   error
	}{
		{t.Context(), c, "..", gateway.ErrInvalidArgument},
		{nil, c, requestID, gateway.ErrInvalidArgument},
		{t.Context(), &gateway.Client{}, requestID, gateway.ErrInvalidArgument},
		{t.Context(), nil, requestID, gateway.ErrInvalidArgument},
		{t.Context(), keyless, requestID, gateway.ErrMissingAPIKey},
		{cancelledContext(), c, requestID, context.Canceled},
	} {
		got, err := tt.client.WaitWithdrawal(tt.ctx, tt.id, gateway.WaitOptions{})
		assertInvariants(t, got, err)
		assert.ErrorIs(t, err, tt.want)
	}
}

// Changed is called once for each change: of the status, and of any other field.
// I-142
func TestWaitOptions_Changed(t *testing.T) {
	t.Parallel()
	feeOf := func(fee string) tripper { return withdrawalWith(`"fee":"1.5"`, `"fee":"`+fee+`"`) }
	synctest.Test(t, func(t *testing.T) {
		p := paced(
			t, gateway.RetryPolicy{MaxAttempts: 1},
			withdrawalIn("PENDING"), withdrawalIn("PENDING"), saysStatus(500), withdrawalIn("PENDING"),
			withdrawalIn("REVIEW"), withdrawalIn("REVIEW"), withdrawalIn("PENDING"), feeOf("1.50"), feeOf("2"), withdrawalIn("FAILED"),
		)
		var seen []string
		_, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{Changed: func(w *gateway.Withdrawal) {
			seen = append(seen, fmt.Sprint(w.Status, " ", w.Fee))
			w.Status = "changed by the caller, whose copy it is"
		}})
		require.ErrorIs(t, err, gateway.ErrWithdrawalFailed)
		assert.Equal(t, []string{"PENDING 1.5", "REVIEW 1.5", "PENDING 1.5", "PENDING 2", "FAILED 1.5"}, seen)
		assert.Len(t, p.at, 10)
	})
}

// An unknown status is reported once in each wait, with its text, however many polls see it; at most 64 are.
// I-144
func TestClient_WaitWithdrawal_unknownStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		var w recorder
		held, review := withdrawalIn("ON_HOLD"), withdrawalIn("review")
		wait := trips{held, held, review, held, withdrawalIn("pending"), review, withdrawalIn("completed")}
		many := slices.Concat(wait, wait)
		for i := range 70 {
			many = append(many, withdrawalIn(fmt.Sprint("HELD-", i)))
		}
		p := scriptedClient(t, append(many, withdrawalIn("COMPLETED"))...)
		p.connect(t, w.option(), gateway.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
		for n, reported := range []int{2, 4, 68} {
			_, err := p.client.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
			require.NoError(t, err)
			unknown := slices.DeleteFunc(slices.Clone(w.drifts), func(d gateway.Drift) bool { return d.Kind != gateway.DriftUnknownStatus })
			assert.Len(t, unknown, reported)
			assert.Equal(t, reported, strings.Count(out.String(), ` is not documented`), out.String())
			for _, status := range []string{"ON_HOLD", "review"} {
				assert.Equal(t, min(n+1, 2), strings.Count(out.String(), status+`\" is not documented`), out.String())
			}
		}
	})
}
