package main

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An eventStream is a live stream as a page receives it.
type eventStream struct {
	status int
	header http.Header
	lines  *bufio.Scanner
	close  func()
}

// openStream opens a live stream that ends with the test at the latest.
func (v *visitor) openStream(address string) eventStream {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	require.NoError(v.t, err)
	resp, err := (&http.Client{Jar: v}).Do(req)
	require.NoError(v.t, err)
	stop := func() { cancel(); _ = resp.Body.Close() }
	v.t.Cleanup(stop)
	return eventStream{resp.StatusCode, resp.Header, bufio.NewScanner(resp.Body), stop}
}

// readUntil reads until a line contains the text.
func (w eventStream) readUntil(text string) bool {
	for w.lines.Scan() {
		if strings.Contains(w.lines.Text(), text) {
			return true
		}
	}
	return false
}

// streamsOf returns the number of live streams of a buyer, and the number of
// buyers that have one.
func (s *shop) streamsOf(buyer string) (buyerStreams, buyers int) {
	s.streamCounts.mu.Lock()
	defer s.streamCounts.mu.Unlock()
	return s.streamCounts.open[buyer], len(s.streamCounts.open)
}

func TestStreams_limitPerBuyer(t *testing.T) {
	t.Parallel()
	s, server := newHarness(t).open()
	v, other := newVisitor(t), newVisitor(t)
	live, othersLive := server.URL+v.order(server.URL, "mug")+"/live", server.URL+other.order(server.URL, "mug")+"/live"
	var open []eventStream
	for range maxStreamsPerBuyer {
		open = append(open, v.openStream(live))
		require.Equal(t, http.StatusOK, open[len(open)-1].status)
	}
	ninth := v.openStream(live)
	require.Equal(t, http.StatusTooManyRequests, ninth.status)
	assert.True(t, ninth.readUntil("Close one of them to see live updates on this page. It works without them, too."))
	assert.Equal(t, http.StatusOK, other.openStream(othersLive).status, "another buyer")
	assert.Len(t, s.buyerStreams, maxStreamsPerBuyer+1)

	open[3].close()
	eventually(t, "a slot is free", func() bool { return len(s.buyerStreams) == maxStreamsPerBuyer })
	eventually(t, "the slot is acquired", func() bool { return v.openStream(live).status == http.StatusOK })
	assert.Equal(t, http.StatusTooManyRequests, v.openStream(live).status)
	s.closeStreams()
	eventually(t, "all slots are free", func() bool { _, buyers := s.streamsOf(""); return len(s.buyerStreams) == 0 && buyers == 0 })
}

// A stream refused by the overall limit does not count for the buyer.
func TestStreams_refusedStreamIsNotCounted(t *testing.T) {
	t.Parallel()
	s, server := newHarness(t).open()
	v := newVisitor(t)
	live := server.URL + v.order(server.URL, "mug") + "/live"
	for range maxStreams {
		s.buyerStreams <- struct{}{}
	}
	for range maxStreamsPerBuyer + 1 {
		refused := v.openStream(live)
		require.Equal(t, http.StatusServiceUnavailable, refused.status)
		assert.Equal(t, "5", refused.header.Get("Retry-After"))
	}
	_, buyers := s.streamsOf("")
	assert.Zero(t, buyers)
	<-s.buyerStreams
	assert.Equal(t, http.StatusOK, v.openStream(live).status)
}

func TestStreams_separateLimitForMerchants(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
	require.NoError(t, s.watched.add(t.Context(), h.gw.AddWithdrawal(gatewaytest.Withdrawal{Amount: "1", Fee: "0", Coin: "USDT", Network: "Tron"}), "Anna"))
	live := server.URL + "/admin/withdrawals/live"
	for range maxStreams {
		s.buyerStreams <- struct{}{}
	}
	open := anna.openStream(live)
	require.Equal(t, http.StatusOK, open.status, "the buyers' limit is reached")
	assert.Contains(t, anna.get(server.URL+"/admin/metrics").text, `"live_streams": 512, "merchant_streams": 1}`)
	for range maxMerchantStreams - 1 {
		s.merchantStreams <- struct{}{}
	}
	refused := anna.openStream(live)
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	assert.True(t, refused.readUntil("The page works without live updates, too."))
	<-s.buyerStreams
	assert.Equal(t, http.StatusOK, v.openStream(server.URL+v.order(server.URL, "mug")+"/live").status, "the merchants' limit is reached")
	open.close()
	eventually(t, "a slot is free", func() bool { return len(s.merchantStreams) == maxMerchantStreams-1 })
}

// A stream that is open when its session ends sends no more events.
func TestStreams_endWithSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, server := h.open()
	anna := newVisitor(t).logIn(server.URL)
	id := h.gw.AddWithdrawal(gatewaytest.Withdrawal{Amount: "1", Fee: "0", Coin: "USDT", Network: "Tron"})
	anna.post(server.URL+"/admin/withdrawals", "id", id)
	stream := anna.openStream(server.URL + "/admin/withdrawals/live")
	require.True(t, stream.readUntil(`"status":"PENDING"`))
	anna.post(server.URL + "/admin/logout")
	require.NoError(t, h.gw.SetWithdrawalStatus(id, "COMPLETED"))
	assert.False(t, stream.readUntil("event:"))
}

// HEAD gets its response at once: it would occupy a slot and receive no
// event.
func TestStreams_refuseHEAD(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	v := newVisitor(t)
	res, err := v.do(http.MethodHead, server.URL+v.order(server.URL, "mug")+"/live", nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusMethodNotAllowed, res.status)
	assert.Equal(t, "GET", res.header.Get("Allow"))
}
