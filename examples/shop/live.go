package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A stream sends events to a page: server-sent events, which a browser opens
// again by itself.
type stream struct {
	context.Context // ends when the page or the shop is closed
	w               http.ResponseWriter
	control         *http.ResponseController
	cancel          context.CancelFunc
	close           func()
}

// watchers count the live streams of each buyer.
type watchers struct {
	mu   sync.Mutex
	open map[string]int // whoever has none is not in it
}

// enter counts one more stream of a buyer, unless there are enough.
func (c *watchers) enter(buyer string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[buyer] >= maxBuyerStreams {
		return false
	}
	c.open[buyer]++
	return true
}

func (c *watchers) leave(buyer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[buyer]--; c.open[buyer] == 0 {
		delete(c.open, buyer)
	}
}

// seat takes a place for a live stream of a buyer. Call leave, once.
func (s *shop) seat(buyer string) (leave func(), err error) {
	if !s.watchers.enter(buyer) {
		return nil, &problem{http.StatusTooManyRequests, "You watch many pages", "Close one of them to see live numbers on this one. It works without them, too."}
	}
	stand, err := place(s.streams)
	if err != nil {
		s.watchers.leave(buyer)
		return nil, err
	}
	return func() { stand(); s.watchers.leave(buyer) }, nil
}

// place takes one of the places that there are. Call leave, once.
func place(places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, &problem{http.StatusServiceUnavailable, "Too many pages are watched", "The page works without live numbers, too."}
	}
}

// openStream begins to answer with events. Close it, once. HEAD asks for no
// events, and would wait for the end of them.
func (s *shop) openStream(w http.ResponseWriter, r *http.Request) (*stream, error) {
	if r.Method == http.MethodHead {
		return nil, notAllowed(w, http.MethodGet)
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.streaming, cancel)
	st := &stream{ctx, w, http.NewResponseController(w), cancel, func() { stop(); cancel() }}
	if err := st.control.SetReadDeadline(time.Time{}); err != nil { // the one of the request would end the stream
		st.close()
		return nil, err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies shall pass events on at once
	return st, nil
}

// send writes an event. A page that does not read is given up.
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

// streamOffers sends what an order costs now, again and again.
func (s *shop) streamOffers(w http.ResponseWriter, r *http.Request) error {
	o, err := s.buyersOrder(r)
	if err != nil {
		return err
	}
	leave, err := s.seat(o.Buyer)
	if err != nil {
		return err
	}
	defer leave()
	st, err := s.openStream(w, r)
	if err != nil {
		return err
	}
	defer st.close()
	ticker := time.NewTicker(s.cfg.tick)
	defer ticker.Stop()
	for {
		q, err := s.quote(st, o)
		if err != nil {
			q = quote{Age: "There are no rates just now.", Stale: true}
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
