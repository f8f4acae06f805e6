package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// I-28, I-101
func TestWithAPIKey(t *testing.T) {
	t.Parallel()
	const other = "OTHER-MERCHANT-KEY-77"
	forEach(t, "another merchant's key", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		c := newClient(t, w.URL)
		_, err := s.call(t.Context(), c, gateway.WithAPIKey(other), gateway.WithMerchant("another"))
		require.NoError(t, err)
		got := only(t, w)
		text := got.Body + got.Header.Get("X-Api-Key")
		assert.NotContains(t, text, canary)
		if s.op == "balance" || s.op == "withdrawal" || s.write {
			assert.Equal(t, 1, strings.Count(text, other))
			return
		}
		assert.Empty(t, text, "a public call carries no key")
	})
	t.Run("it is for one call", func(t *testing.T) {
		t.Parallel()
		w := serve(t, respond(200, enveloped(`{"USDT":"1"}`)))
		c := newClient(t, w.URL)
		for _, opts := range [][]gateway.CallOption{{gateway.WithAPIKey(other)}, nil} {
			_, err := c.Balance(t.Context(), gateway.BalanceQuery{}, opts...)
			require.NoError(t, err)
		}
		got := w.Requests()
		require.Len(t, got, 2)
		assert.Equal(t, other, got[0].Header.Get("X-Api-Key"))
		assert.Equal(t, canary, got[1].Header.Get("X-Api-Key"))
	})
	t.Run("it is redacted in the response", func(t *testing.T) {
		t.Parallel()
		_, err := cannedClient(t, 400, refused("bad key "+other)).
			Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithAPIKey(other))
		require.Error(t, err)
		assert.NotContains(t, err.Error(), other)
		assert.Contains(t, err.Error(), "[REDACTED]")
	})
}

// Each call has the key that the source returns at that time. The source is called once
// per call, however many attempts it makes, and knows the merchant by its name only.
// I-28
func TestWithAPIKeySource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var sent []string
		c := clientWithKeySource(t, "http://localhost", func(ctx context.Context) (string, error) {
			calls++
			assert.Nil(t, ctx.Value(tenantKey{}))
			assert.NotNil(t, ctx.Done())
			call, _ := gateway.CallFromContext(ctx)
			assert.Equal(t, "withdrawal", call.Operation)
			assert.Equal(t, "shop-1", call.Merchant)
			return fmt.Sprintf("key-number-%d", calls), nil
		}, through(func(req *http.Request) (*http.Response, error) {
			sent = append(sent, req.Header.Get("x-api-key"))
			if len(sent) == 1 {
				return reply(500, refused("No.")), nil
			}
			return reply(201, enveloped(withdrawalJSON)), nil
		}))
		ctx := context.WithValue(t.Context(), tenantKey{}, "shop-2")
		for range 2 {
			_, err := c.Withdrawal(ctx, requestID, gateway.WithMerchant("shop-1"))
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"key-number-1", "key-number-1", "key-number-2"}, sent)
	})
}

// The source is called where the interface requires a key, and nowhere else.
func TestWithAPIKeySource_WhereAKeyIsSent(t *testing.T) {
	t.Parallel()
	forEach(t, "the source is called if a key is sent", func(t *testing.T, s subject) {
		for _, everywhere := range []bool{false, true} {
			calls := 0
			w := serve(t, respond(s.status, s.body()))
			opts := []gateway.Option{}
			if everywhere {
				opts = append(opts, gateway.WithAPIKeyOnPublicCalls())
			}
			c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { calls++; return canary, nil }, opts...)
			result, err := s.call(t.Context(), c)
			require.NoError(t, err)
			assertInvariants(t, result, err)
			assertNoKey(t, c)
			want := 0
			if s.keyed || everywhere {
				want = 1
			}
			assert.Equal(t, want, calls)
			got := w.Requests()[0]
			assert.Equal(t, want, strings.Count(got.Body+got.Header.Get("x-api-key"), canary))
		}
	})
}

func TestWithAPIKeySource_Fails(t *testing.T) {
	t.Parallel()
	unavailable := errors.New("the store is unavailable")
	forEach(t, "its error is the error of the call", func(t *testing.T, s subject) {
		w := serve(t, respond(s.status, s.body()))
		c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { return canary, fmt.Errorf("%s: %w", canary, unavailable) }, gateway.WithAPIKeyOnPublicCalls())
		result, err := s.call(t.Context(), c)
		assertInvariants(t, result, err)
		assert.Contains(t, err.Error(), "the source of the API key: [REDACTED]: the store is unavailable")
		var failure *gateway.TransportError
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, gateway.PhaseStart, failure.Phase)
		assert.Zero(t, failure.Attempts)
		assert.Empty(t, w.Requests())
		if s.write {
			assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
			assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
		}
	})
}

func TestWithAPIKeySource_BadKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, key string
		want      string
		missing   bool
	}{
		{"no key", "", "gateway: create_invoice: apiKey: is required for this call: give it to New, WithAPIKeySource or WithAPIKey", true},
		{"a line end, as at the end of a file", canary + "\n", "gateway: create_invoice: WithAPIKeySource: the key must be printable ASCII: no line end, tab or other control character", false},
		{"too long", strings.Repeat("k", 4097), "gateway: create_invoice: WithAPIKeySource: the key is longer than 4,096 bytes", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, enveloped(invoiceJSON)))
			c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { return tt.key, nil })
			result, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, result, err)
			require.EqualError(t, err, tt.want)
			assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
			assert.Equal(t, tt.missing, errors.Is(err, gateway.ErrMissingAPIKey))
			assert.Empty(t, w.Requests())
		})
	}
}

// A key of the call takes precedence over the source, and a bad argument or an ended
// context is reported before the source is called.
func TestWithAPIKeySource_NotCalled(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	w := serve(t, respond(201, enveloped(withdrawalJSON)))
	c := clientWithKeySource(t, w.URL, func(context.Context) (string, error) { calls.Add(1); return canary, nil })

	_, err := c.Withdrawal(t.Context(), requestID, gateway.WithAPIKey("another-key"))
	require.NoError(t, err)
	assert.Equal(t, "another-key", w.Requests()[0].Header.Get("x-api-key"))
	_, err = c.Withdrawal(t.Context(), "..")
	require.ErrorIs(t, err, gateway.ErrInvalidArgument)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Withdrawal(ended, requestID)
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, calls.Load())
}

// A source that respects its context ends with the timeout of an attempt.
func TestWithAPIKeySource_Slow(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"Withdrawal": 15 * time.Second, "CreateInvoice": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := clientWithKeySource(t, "http://localhost", func(ctx context.Context) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				})
				begun := time.Now()
				result, err := subjectNamed(name).call(t.Context(), c)
				assert.Equal(t, timeout, time.Since(begun))
				assertInvariants(t, result, err)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
			})
		})
	}
}
