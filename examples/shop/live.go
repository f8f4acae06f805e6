package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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

// openStream begins to answer with events. Close it, once.
func (s *shop) openStream(w http.ResponseWriter, r *http.Request) (*stream, error) {
	select {
	case s.streams <- struct{}{}:
	default:
		return nil, &problem{http.StatusServiceUnavailable, "Too many pages are watched", "The page works without live numbers, too."}
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.streaming, cancel)
	st := &stream{ctx, w, http.NewResponseController(w), cancel, func() { stop(); cancel(); <-s.streams }}
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
