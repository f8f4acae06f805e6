package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/redact"
)

const flyingUUID = "8ee74576-0bcf-4bfa-9c0c-de1a8cc8fa6b"

func flyingCall(change func(*call)) *call {
	c := &call{key: redact.NewSecret("key-of-the-client")}
	c.order.Request = InvoiceRequest{OrderID: flyingUUID, Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50")}
	if change != nil {
		change(c)
	}
	return c
}

// A call waits for the one that has the lease of its order only if that sends the same.
func TestFlights_find(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*call)
		found  bool
	}{
		{"an equal call", nil, true},
		{"an amount with more digits", func(c *call) { c.order.Request.Price = decimal.RequireFromString("10.500") }, true},
		{"another identifier of the request", func(c *call) { c.cfg.header = http.Header{"X-Request-Id": {"mine"}} }, true},
		{"the order as a UUID in the other case", func(c *call) { c.order.Request.OrderID = strings.ToUpper(flyingUUID) }, true},
		{"another amount", func(c *call) { c.order.Request.Amount = decimal.RequireFromString("1") }, false},
		{"another network", func(c *call) { c.order.Request.NetworkName = "Tron" }, false},
		{"another order", func(c *call) { c.order.Request.OrderID = "A-18" }, false},
		{"another merchant", func(c *call) { c.order.Merchant = "b" }, false},
		{"another key", func(c *call) { c.key = redact.NewSecret("another-key") }, false},
		{"another header", func(c *call) { c.cfg.header = http.Header{"X-Tenant": {"b"}} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var fs flights
			first := flyingCall(nil)
			f := fs.begin(first)
			assert.True(t, fs.has(&first.order.Order))
			assert.Equal(t, tt.found, fs.find(flyingCall(tt.change)) != nil)
			fs.end(&first.order.Order, f, nil)
			assert.Nil(t, fs.find(flyingCall(nil)), "it has ended")
			assert.False(t, fs.has(&first.order.Order))
			assert.Empty(t, fs.all)
		})
	}
}

// Each call that waits gets a refusal of its own, and no other error.
func TestFlights_wait(t *testing.T) {
	t.Parallel()
	rejected := &APIError{
		StatusCode: 422, Body: []byte("no"), Meta: json.RawMessage("{}"), Header: http.Header{"Date": {"today"}}, Attempts: 1,
		decision: decision{outcome: OutcomeRejected},
	}
	for _, err := range []error{nil, rejected, errPanicked, &APIError{StatusCode: 500}} {
		var fs flights
		first := flyingCall(nil)
		f := fs.begin(first)
		waits := fs.find(flyingCall(nil))
		fs.end(&first.order.Order, f, err)
		if err == error(rejected) {
			rejected.Body[0] = 'g' // its own caller changes it
		}
		a, ended := waits.wait(t.Context(), time.Hour)
		require.NoError(t, ended)
		b, _ := waits.wait(t.Context(), time.Hour)
		if err != error(rejected) {
			assert.Nil(t, a)
			continue
		}
		assert.Zero(t, a.Attempts)
		for _, shared := range []*APIError{a, b} {
			shared.Body[0], shared.Meta[0] = 'x', 'x'
			shared.Header["Date"][0] = "never"
		}
		assert.Equal(t, "go", string(rejected.Body))
		assert.Equal(t, "{}", string(rejected.Meta))
		assert.Equal(t, "today", rejected.Header.Get("Date"))
		again, _ := waits.wait(t.Context(), time.Hour)
		assert.Equal(t, "no", string(again.Body))
	}
}

// The last orders of unknown outcome are remembered, and others for as long as they are sent.
func TestAwaited(t *testing.T) {
	t.Parallel()
	var a awaited
	for i := range maxLost + 1 {
		a.add(flightKey{"", fmt.Sprint("lost-", i)})
		a.remove(flightKey{"", fmt.Sprint("lost-", i)}, OutcomeUnknown)
	}
	assert.False(t, a.has("lost-0"))
	assert.True(t, a.has("lost-1"))
	assert.True(t, a.has(fmt.Sprint("lost-", maxLost)))
	a.add(flightKey{"", "A-17"})
	a.add(flightKey{"", "A-17"})
	a.remove(flightKey{"", "A-17"}, OutcomeRejected)
	assert.True(t, a.has("A-17"), "another call sends it")
	a.remove(flightKey{"", "A-17"}, OutcomeNotSent)
	assert.False(t, a.has("A-17"))
	a.add(flightKey{"b", "lost-1"})
	a.remove(flightKey{"b", "lost-1"}, OutcomeSucceeded)
	assert.True(t, a.has("lost-1"), "that of another merchant may still come")
	a.add(flightKey{"", "lost-1"})
	a.remove(flightKey{"", "lost-1"}, OutcomeSucceeded)
	assert.False(t, a.has("lost-1"))
	assert.Len(t, a.lost, maxLost-1)
	assert.Len(t, a.orders, maxLost-1)
}
