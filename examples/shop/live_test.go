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

// A watched is a live stream, as the page has it.
type watched struct {
	status int
	header http.Header
	lines  *bufio.Scanner
	close  func()
}

// watch opens a live stream, which ends with the test at the latest.
func (v *visitor) watch(address string) watched {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	require.NoError(v.t, err)
	resp, err := (&http.Client{Jar: v}).Do(req)
	require.NoError(v.t, err)
	leave := func() { cancel(); _ = resp.Body.Close() }
	v.t.Cleanup(leave)
	return watched{resp.StatusCode, resp.Header, bufio.NewScanner(resp.Body), leave}
}

// says reads until a line has the text.
func (w watched) says(text string) bool {
	for w.lines.Scan() {
		if strings.Contains(w.lines.Text(), text) {
			return true
		}
	}
	return false
}

// streamsOf returns how many live streams a buyer has, and of how many buyers
// there are some.
func (s *shop) streamsOf(buyer string) (streams, buyers int) {
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	return s.watchers.open[buyer], len(s.watchers.open)
}

func TestStreams_areFewOfOneBuyer(t *testing.T) {
	t.Parallel()
	s, server := newStage(t).open()
	v, other := newVisitor(t), newVisitor(t)
	live, othersLive := server.URL+v.order(server.URL, "mug")+"/live", server.URL+other.order(server.URL, "mug")+"/live"
	var open []watched
	for range maxBuyerStreams {
		open = append(open, v.watch(live))
		require.Equal(t, http.StatusOK, open[len(open)-1].status)
	}
	ninth := v.watch(live)
	require.Equal(t, http.StatusTooManyRequests, ninth.status)
	assert.True(t, ninth.says("Close one of them to see live numbers on this one. It works without them, too."))
	assert.Equal(t, http.StatusOK, other.watch(othersLive).status, "those of somebody else")
	assert.Len(t, s.streams, maxBuyerStreams+1)

	open[3].close()
	eventually(t, "its place is free", func() bool { return len(s.streams) == maxBuyerStreams })
	eventually(t, "and is taken", func() bool { return v.watch(live).status == http.StatusOK })
	assert.Equal(t, http.StatusTooManyRequests, v.watch(live).status)
	s.closeStreams()
	eventually(t, "all places are free", func() bool { _, buyers := s.streamsOf(""); return len(s.streams) == 0 && buyers == 0 })
}

// When there are too many in all, none of them counts for the buyer.
func TestStreams_thatAreRefusedTakeNoPlace(t *testing.T) {
	t.Parallel()
	s, server := newStage(t).open()
	v := newVisitor(t)
	live := server.URL + v.order(server.URL, "mug") + "/live"
	for range maxStreams {
		s.streams <- struct{}{}
	}
	for range maxBuyerStreams + 1 {
		refused := v.watch(live)
		require.Equal(t, http.StatusServiceUnavailable, refused.status)
		assert.Equal(t, "5", refused.header.Get("Retry-After"))
	}
	_, buyers := s.streamsOf("")
	assert.Zero(t, buyers)
	<-s.streams
	assert.Equal(t, http.StatusOK, v.watch(live).status)
}

func TestStreams_ofMerchantsHaveTheirOwnPlaces(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, server := st.open()
	v, anna := newVisitor(t), newVisitor(t).asMerchant(server.URL)
	require.NoError(t, s.watched.add(t.Context(), st.gw.AddWithdrawal(gatewaytest.Withdrawal{Amount: "1", Fee: "0", Coin: "USDT", Network: "Tron"}), "Anna"))
	live := server.URL + "/admin/withdrawals/live"
	for range maxStreams {
		s.streams <- struct{}{}
	}
	open := anna.watch(live)
	require.Equal(t, http.StatusOK, open.status, "buyers have taken all of theirs")
	assert.Contains(t, anna.get(server.URL+"/admin/metrics").text, `"live_streams": 512, "merchant_streams": 1}`)
	for range maxDesks - 1 {
		s.desks <- struct{}{}
	}
	refused := anna.watch(live)
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	assert.True(t, refused.says("The page works without live numbers, too."))
	<-s.streams
	assert.Equal(t, http.StatusOK, v.watch(server.URL+v.order(server.URL, "mug")+"/live").status, "merchants have taken all of theirs")
	open.close()
	eventually(t, "a place is free", func() bool { return len(s.desks) == maxDesks-1 })
}

// A stream that was open when its session ended says nothing more.
func TestStreams_endWithTheSession(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	_, server := st.open()
	anna := newVisitor(t).asMerchant(server.URL)
	id := st.gw.AddWithdrawal(gatewaytest.Withdrawal{Amount: "1", Fee: "0", Coin: "USDT", Network: "Tron"})
	anna.post(server.URL+"/admin/withdrawals", "id", id)
	stream := anna.watch(server.URL + "/admin/withdrawals/live")
	require.True(t, stream.says(`"status":"PENDING"`))
	anna.post(server.URL + "/admin/logout")
	require.NoError(t, st.gw.SetWithdrawalStatus(id, "COMPLETED"))
	assert.False(t, stream.says("event:"))
}

// HEAD is answered at once: it would hold a place, and see no event.
func TestStreams_areNotForHEAD(t *testing.T) {
	t.Parallel()
	_, server := newStage(t).open()
	v := newVisitor(t)
	a, err := v.do(http.MethodHead, server.URL+v.order(server.URL, "mug")+"/live", nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusMethodNotAllowed, a.status)
	assert.Equal(t, "GET", a.header.Get("Allow"))
}
