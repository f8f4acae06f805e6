package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A stream sends server-sent events to a page. The browser reconnects by
// itself.
type stream struct {
	context.Context // ends when the page or the shop is closed
	w               http.ResponseWriter
	control         *http.ResponseController
	cancel          context.CancelFunc
	close           func()
}

// streamCounts counts the live streams of each buyer.
type streamCounts struct {
	mu   sync.Mutex
	open map[string]int // buyers without a stream have no entry
}

// add counts one more stream of a buyer and reports whether the limit allows
// it.
func (c *streamCounts) add(buyer string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[buyer] >= maxStreamsPerBuyer {
		return false
	}
	c.open[buyer]++
	return true
}

func (c *streamCounts) remove(buyer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[buyer]--; c.open[buyer] == 0 {
		delete(c.open, buyer)
	}
}

// acquireBuyerStream acquires a live stream of a buyer. Call release exactly
// once.
func (s *shop) acquireBuyerStream(buyer string) (release func(), err error) {
	if !s.streamCounts.add(buyer) {
		return nil, &problem{http.StatusTooManyRequests, "Too many pages are open", "Close one of them to see live updates on this page. It works without them, too."}
	}
	releaseSlot, err := acquireSlot(s.buyerStreams)
	if err != nil {
		s.streamCounts.remove(buyer)
		return nil, err
	}
	return func() { releaseSlot(); s.streamCounts.remove(buyer) }, nil
}

// acquireSlot acquires one of a limited number of slots. Call release exactly
// once.
func acquireSlot(slots chan struct{}) (release func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	default:
		return nil, &problem{http.StatusServiceUnavailable, "Live updates are busy", "The page works without live updates, too."}
	}
}

// openStream starts an event stream. Close it exactly once. HEAD is refused:
// it receives no events, and would hold the connection until the stream
// ends.
func (s *shop) openStream(w http.ResponseWriter, r *http.Request) (*stream, error) {
	if r.Method == http.MethodHead {
		return nil, notAllowed(w, http.MethodGet)
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.streamCtx, cancel)
	st := &stream{ctx, w, http.NewResponseController(w), cancel, func() { stop(); cancel() }}
	if err := st.control.SetReadDeadline(time.Time{}); err != nil { // the deadline of the request would end the stream
		st.close()
		return nil, err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not buffer events
	return st, nil
}

// send writes an event. A client that stops reading is disconnected.
func (st *stream) send(event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if err := st.control.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(st.w, "event: %s\ndata: %s\n\n", event, text); err != nil {
		return err
	}
	return st.control.Flush()
}

// streamOffers sends the current quote of an order at regular intervals.
func (s *shop) streamOffers(w http.ResponseWriter, r *http.Request) error {
	o, err := s.buyerOrder(r)
	if err != nil {
		return err
	}
	release, err := s.acquireBuyerStream(o.Buyer)
	if err != nil {
		return err
	}
	defer release()
	st, err := s.openStream(w, r)
	if err != nil {
		return err
	}
	defer st.close()
	ticker := time.NewTicker(s.cfg.liveInterval)
	defer ticker.Stop()
	for {
		q, err := s.quote(st, o)
		if err != nil {
			q = quote{Age: "No rates are available at the moment.", Stale: true}
		}
		if st.send("quote", q) != nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-st.Done():
			return nil
		}
	}
}
