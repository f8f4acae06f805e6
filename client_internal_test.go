package gateway

import (
	"context"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/attempt"
)

// transportOf returns the transport of a sender of invoices.
func transportOf(sender *attempt.Sender) reflect.Value {
	return reflect.ValueOf(sender).Elem().FieldByName("next").Elem().Elem().FieldByName("transport")
}

// Invoices have connections of their own, which are not idle for long: an old one may
// be closed by the server just when an invoice is sent on it.
func TestNew_pools(t *testing.T) {
	t.Parallel()
	pool := func(sender *attempt.Sender) reflect.Value {
		return reflect.ValueOf(sender).Elem().FieldByName("next").Elem()
	}
	idle := func(pool reflect.Value) time.Duration {
		return time.Duration(pool.Elem().FieldByName("IdleConnTimeout").Int())
	}
	c, err := New("https://gateway.test", "")
	require.NoError(t, err)
	reads, invoices := pool(c.reads()), transportOf(c.writes())
	assert.NotEqual(t, reads.Pointer(), invoices.Pointer())
	assert.Equal(t, 90*time.Second, idle(reads))
	assert.Equal(t, 2*time.Second, idle(invoices))

	given := &http.Transport{MaxResponseHeaderBytes: 17}
	c, err = New("https://gateway.test", "", WithHTTPClient(&http.Client{Transport: given}))
	require.NoError(t, err)
	assert.Equal(t, reflect.ValueOf(given).Pointer(), pool(c.reads()).Pointer(), "a caller's transport is used as it is")
	copied := transportOf(c.writes())
	assert.Equal(t, int64(17), copied.Elem().FieldByName("MaxResponseHeaderBytes").Int(), "and invoices go through a copy")
	assert.Equal(t, 2*time.Second, idle(copied))
	assert.Zero(t, given.MaxIdleConnsPerHost, "the caller's is not changed")
}

// Without a transport, InvoiceTransport has the settings of the client's own.
func TestInvoiceTransport_settings(t *testing.T) {
	t.Parallel()
	own := InvoiceTransport(nil).(*attempt.Split)
	posts := reflect.ValueOf(own.Dedicated).Elem().FieldByName("transport").Elem()
	for _, transport := range []reflect.Value{reflect.ValueOf(own.Shared).Elem(), posts} {
		assert.Equal(t, int64(256<<10), transport.FieldByName("MaxResponseHeaderBytes").Int())
	}
	assert.Equal(t, 90*time.Second, own.Shared.IdleConnTimeout)
	assert.Equal(t, int64(2*time.Second), posts.FieldByName("IdleConnTimeout").Int())
	assert.Negative(t, posts.FieldByName("MaxIdleConnsPerHost").Int(), "a connection carries one invoice")
}

// NewTestCache returns a cache of anything, for the tests of [Cache].
func NewTestCache[T any](load func(context.Context) (T, error), o CacheOptions) *Cache[T] {
	client, err := New("https://gateway.test", "")
	if err != nil {
		panic(err)
	}
	cache, err := newCache(client, o, load)
	if err != nil {
		panic(err)
	}
	return cache
}
