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

// sourced makes a client whose key comes from source.
func sourced(t *testing.T, url string, source func(context.Context) (string, error), opts ...gateway.Option) *gateway.Client {
	t.Helper()
	c, err := gateway.New(url, "", append(opts, gateway.WithAPIKeySource(source))...)
	require.NoError(t, err)
	return c
}

// The key of each call is the one that the source gives at that time, and is
// asked for once, however often the call is tried.
func TestWithAPIKeySource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var sent []string
		c := sourced(t, "http://localhost", func(ctx context.Context) (string, error) {
			asked++
			assert.Equal(t, "shop-1", ctx.Value(tenantKey{}), "it is asked under the context of the call")
			op, _ := gateway.OperationFromContext(ctx)
			assert.Equal(t, "withdrawal", op)
			return fmt.Sprintf("key-number-%d", asked), nil
		}, through(func(req *http.Request) (*http.Response, error) {
			sent = append(sent, req.Header.Get("x-api-key"))
			if len(sent) == 1 {
				return reply(500, refused("No.")), nil
			}
			return reply(201, enveloped(withdrawalJSON)), nil
		}))
		ctx := context.WithValue(t.Context(), tenantKey{}, "shop-1")
		for range 2 {
			_, err := c.Withdrawal(ctx, requestID)
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"key-number-1", "key-number-1", "key-number-2"}, sent)
	})
}

// Each method asks the source where the interface says that a key is sent, and
// nowhere else.
func TestWithAPIKeySource_WhereAKeyIsSent(t *testing.T) {
	t.Parallel()
	forEach(t, "the source is asked if a key is sent", func(t *testing.T, s subject) {
		for _, everywhere := range []bool{false, true} {
			asked := 0
			w := serve(t, answer(s.status, s.body()))
			opts := []gateway.Option{}
			if everywhere {
				opts = append(opts, gateway.WithAPIKeyOnPublicCalls())
			}
			c := sourced(t, w.URL, func(context.Context) (string, error) { asked++; return canary, nil }, opts...)
			result, err := s.call(t.Context(), c)
			require.NoError(t, err)
			assertInvariants(t, result, err)
			assertNoKey(t, c)
			want := 0
			if s.keyed || everywhere {
				want = 1
			}
			assert.Equal(t, want, asked)
			got := w.Requests()[0]
			assert.Equal(t, want, strings.Count(got.Body+got.Header.Get("x-api-key"), canary))
		}
	})
}

func TestWithAPIKeySource_Fails(t *testing.T) {
	t.Parallel()
	vault := errors.New("the vault is sealed")
	forEach(t, "its error is the error of the call", func(t *testing.T, s subject) {
		w := serve(t, answer(s.status, s.body()))
		c := sourced(t, w.URL, func(context.Context) (string, error) { return canary, fmt.Errorf("%s: %w", canary, vault) }, gateway.WithAPIKeyOnPublicCalls())
		result, err := s.call(t.Context(), c)
		assertInvariants(t, result, err)
		assert.ErrorIs(t, err, vault)
		assert.Contains(t, err.Error(), "the source of the API key: [REDACTED]: the vault is sealed")
		var failure *gateway.TransportError
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, gateway.PhaseStart, failure.Phase)
		assert.Zero(t, failure.Attempts)
		assert.Empty(t, w.Requests())
		if s.write {
			assert.ErrorIs(t, err, gateway.ErrNotSent)
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
			w := serve(t, answer(200, enveloped(invoiceJSON)))
			c := sourced(t, w.URL, func(context.Context) (string, error) { return tt.key, nil })
			result, err := c.CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, result, err)
			require.EqualError(t, err, tt.want)
			assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
			assert.Equal(t, tt.missing, errors.Is(err, gateway.ErrMissingAPIKey))
			assert.Empty(t, w.Requests())
		})
	}
}

// A call's own key comes first, and a bad argument or an ended context before
// any key.
func TestWithAPIKeySource_NotAsked(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := serve(t, answer(201, enveloped(withdrawalJSON)))
	c := sourced(t, w.URL, func(context.Context) (string, error) { asked.Add(1); return canary, nil })

	_, err := c.Withdrawal(t.Context(), requestID, gateway.WithAPIKey("another-key"))
	require.NoError(t, err)
	assert.Equal(t, "another-key", w.Requests()[0].Header.Get("x-api-key"))
	_, err = c.Withdrawal(t.Context(), "..")
	require.ErrorIs(t, err, gateway.ErrInvalidArgument)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Withdrawal(ended, requestID)
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, asked.Load())
}

// A source that waits is given up with the context of the call, if it heeds it.
func TestWithAPIKeySource_Slow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := sourced(t, "http://localhost", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result, err := c.CreateInvoice(ctx, order("A-17"))
		assertInvariants(t, result, err)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, gateway.ErrTimeout)
		assert.ErrorIs(t, err, gateway.ErrNotSent)
	})
}

// What the service repeats of the source's key is hidden like any other.
func TestWithAPIKeySource_Echo(t *testing.T) {
	t.Parallel()
	w := serve(t, answer(400, refused("bad key "+canary)))
	c := sourced(t, w.URL, func(context.Context) (string, error) { return canary, nil })
	result, err := c.Withdrawal(t.Context(), requestID)
	assertInvariants(t, result, err)
	assert.EqualError(t, err, `gateway: withdrawal: 400: "bad key [REDACTED]"`)
}

// The same order with a key that has changed is the same order.
func TestWithAPIKeySource_Guard(t *testing.T) {
	t.Parallel()
	asked := 0
	c := sourced(t, "http://localhost", func(context.Context) (string, error) {
		asked++
		return fmt.Sprintf("key-number-%d", asked), nil
	}, through(func(*http.Request) (*http.Response, error) { return reply(500, refused("No.")), nil }))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	_, err = c.CreateInvoice(t.Context(), order("A-17"))
	require.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown)
}

func sameKey(context.Context) (string, error) { return canary, nil }
