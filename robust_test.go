package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A long run of backslashes, in which a key could be escaped, is looked through
// in one pass: this test would not end otherwise.
func TestKey_RunsOfBackslashes(t *testing.T) {
	t.Parallel()
	run := strings.Repeat(`\\`, 1<<19)
	c := cannedClient(t, 200, enveloped(`{"address":"`+run+canary+`"}`))
	invoice, err := c.CreateInvoice(t.Context(), order("A-17"))
	assertInvariants(t, invoice, err)
	require.NoError(t, err)
	assert.NotContains(t, string(invoice.Raw), canary)

	c = cannedClient(t, 400, refused(run))
	_, err = c.Withdrawal(t.Context(), requestID)
	require.Error(t, err)
}

// A client with a source of keys knows those that it gave of late, also where
// the source is not asked, or has been asked again since.
func TestWithAPIKeySource_KeysOfLate(t *testing.T) {
	t.Parallel()
	const older, newer = "older-key-5f1d8e0b", "newer-key-7a64c932"
	given := older
	body := ""
	c := sourced(t, "http://localhost", func(context.Context) (string, error) { return given, nil },
		through(func(*http.Request) (*http.Response, error) { return reply(403, body), nil }))
	_, err := c.Withdrawal(t.Context(), requestID)
	require.Error(t, err)
	given = newer
	body = refused("not " + older + " or " + newer)
	for _, call := range []func() error{
		func() error { _, err := c.Withdrawal(t.Context(), requestID); return err },
		func() error { _, err := c.ExchangeRates(t.Context()); return err },
	} {
		err := call()
		assert.ErrorContains(t, err, `403: "not [REDACTED] or [REDACTED]"`)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("revoked " + newer))
	for _, call := range []func() error{
		func() error { _, err := c.Catalog(gateway.CacheOptions{}).Snapshot(ctx); return err },
		func() error {
			_, err := c.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{})
			return err
		},
		func() error {
			for _, err := range c.WaitWithdrawals(ctx, []string{requestID}, gateway.WaitOptions{}) {
				return err
			}
			return nil
		},
	} {
		err := call()
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, "revoked [REDACTED]")
		assert.NotContains(t, err.Error(), newer)
	}
}

// However many keys a source gives at a time, that of a call is known to it.
func TestWithAPIKeySource_ManyAtATime(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := sourced(t, "http://localhost", func(context.Context) (string, error) {
		return fmt.Sprintf("CANARY-key-number-%02d", asked.Add(1)%64), nil
	}, through(func(req *http.Request) (*http.Response, error) {
		return reply(400, refused("bad key "+req.Header.Get("X-Api-Key"))), nil
	}))
	var callers sync.WaitGroup
	var shown atomic.Int64
	for range 64 {
		callers.Go(func() {
			for range 200 {
				if _, err := c.Withdrawal(t.Context(), requestID); strings.Contains(err.Error(), "CANARY") {
					shown.Add(1)
				}
			}
		})
	}
	callers.Wait()
	assert.Zero(t, shown.Load())
}

// An order is guarded whether its key came from the source or with the call.
func TestWithAPIKeySource_GuardAndCallKey(t *testing.T) {
	t.Parallel()
	c := sourced(t, "http://localhost", sameKey,
		through(func(*http.Request) (*http.Response, error) { return reply(500, refused("No.")), nil }))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.WithAPIKey(canary))
	require.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown)
}

// A source that fails in passing does not end a wait.
func TestWithAPIKeySource_Hiccup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := sourced(t, "http://localhost", func(context.Context) (string, error) {
			if asked++; asked == 1 {
				return "", &net.DNSError{Err: "try again", IsTemporary: true}
			}
			return canary, nil
		}, through(func(*http.Request) (*http.Response, error) {
			return reply(201, enveloped(strings.Replace(withdrawalJSON, "PENDING", "COMPLETED", 1))), nil
		}))
		w, err := c.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
		require.NoError(t, err)
		assert.Equal(t, gateway.WithdrawalCompleted, w.Status)
	})
}

// A panic of the caller's transport comes out where the caller can recover from
// it, and a transport that ends its goroutine is one.
func TestClient_WaitWithdrawals_Panics(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){
		"the transport's":                     func() { panic("the transport's") },
		"gateway: a poll ended its goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) { end(); return nil, nil }))
				assert.PanicsWithValue(t, name, func() {
					for range c.WaitWithdrawals(t.Context(), []string{"a", "b", "c"}, gateway.WaitOptions{}) {
						assert.Fail(t, "nothing has ended")
					}
				})
			})
		})
	}
}

// A RoundTripper that writes into the values of a header spoils its own request.
func TestClient_HeaderValuesAreOfOneCall(t *testing.T) {
	t.Parallel()
	var sent []string
	c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
		for _, name := range []string{"X-Api-Key", "User-Agent", "Accept", "Content-Type"} {
			sent = append(sent, req.Header[name][0])
			req.Header[name][0] = "***"
		}
		return reply(201, enveloped(withdrawalJSON)), nil
	}))
	for range 2 {
		_, err := c.Withdrawal(t.Context(), requestID)
		require.NoError(t, err)
	}
	assert.Equal(t, sent[:4], sent[4:])
	assert.NotContains(t, sent, "***")
}

// idle gives what it has, and then neither more nor an end.
type idle struct{ left io.Reader }

func (b idle) Read(p []byte) (int, error) {
	n, _ := b.left.Read(p)
	return n, nil
}

// A body that gives nothing, again and again, does not keep a core busy.
func TestClient_BodiesThatGiveNothing(t *testing.T) {
	t.Parallel()
	forEach(t, "the call ends", func(t *testing.T, s subject) {
		for _, status := range []int{s.status, 404} {
			for _, begun := range []string{"", "\xef", `{"message":`} {
				c := newClient(t, "http://localhost", once(), gateway.WithOrderGuard(nil), through(func(*http.Request) (*http.Response, error) {
					answer := reply(status, "")
					answer.Body, answer.ContentLength = io.NopCloser(idle{strings.NewReader(begun)}), -1
					return answer, nil
				}))
				result, err := s.call(t.Context(), c)
				assertInvariants(t, result, err)
				require.Error(t, err)
				if status == s.status && !s.write {
					assert.ErrorIs(t, err, io.ErrNoProgress)
				}
			}
		}
	})
}

// A talkative context ends with words of its own.
type talkative struct {
	context.Context
	words string
}

func (c talkative) Err() error {
	if c.Context.Err() == nil {
		return nil
	}
	return errors.New(c.words)
}

func TestKey_InTheErrorOfAContext(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	forEach(t, "its words are cleaned", func(t *testing.T, s subject) {
		result, err := s.call(talkative{ended, "my key is " + canary}, newClient(t, "http://localhost"))
		assertInvariants(t, result, err)
		assert.ErrorContains(t, err, "my key is [REDACTED]")
	})
}

// What is handed out twice is there twice.
func TestWithResponse_metaIsItsOwn(t *testing.T) {
	t.Parallel()
	var response gateway.Response
	c := cannedClient(t, 400, `{"message":"No.","result":[],"meta":{"a":1}}`)
	_, err := c.Withdrawal(t.Context(), requestID, gateway.WithResponse(&response))
	var refusal *gateway.APIError
	require.ErrorAs(t, err, &refusal)
	copy(response.Meta, bytes.Repeat([]byte("x"), len(response.Meta)))
	assert.Equal(t, `{"a":1}`, string(refusal.Meta))
}
