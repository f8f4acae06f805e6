package main

import (
	"context"
	"expvar"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cryptogw/gateway"
)

// An observer counts the client's attempts and stores the drift it reports.
// Its variables are not published process-wide, because several shops in one
// process would share them.
type observer struct {
	gateway.NopObserver
	attempts expvar.Map // by operation and status
	millis   expvar.Map // total duration, by operation
	drifts   expvar.Int

	mu      sync.Mutex
	entries []driftEntry
}

// A driftEntry is a drift with its count and times.
type driftEntry struct {
	gateway.Drift
	Count       int
	First, Last time.Time
}

// maxDrifts limits the number of different drifts stored.
const maxDrifts = 50

func newObserver() *observer { return &observer{} }

// Attempt implements [gateway.Observer].
func (o *observer) Attempt(_ context.Context, a gateway.Attempt) {
	status := "no response"
	if a.StatusCode > 0 {
		status = fmt.Sprint(a.StatusCode)
	}
	o.attempts.Add(a.Operation+" "+status, 1)
	o.millis.Add(a.Operation, a.Duration.Milliseconds())
}

// Drift implements [gateway.Observer].
func (o *observer) Drift(_ context.Context, d gateway.Drift) {
	o.drifts.Add(1)
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	i := slices.IndexFunc(o.entries, func(s driftEntry) bool { return s.Drift == d })
	switch {
	case i >= 0:
		o.entries[i].Count++
		o.entries[i].Last = now
	case len(o.entries) < maxDrifts:
		o.entries = append(o.entries, driftEntry{d, 1, now, now})
	}
}

// drift returns the drift reported so far.
func (o *observer) drift() []driftEntry {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.entries)
}

// showMetrics writes the metrics in the format of expvar.
func (s *shop) showMetrics(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, err := fmt.Fprintf(w, "{\"gateway_attempts\": %s, \"gateway_milliseconds\": %s, \"gateway_drifts\": %s, \"live_streams\": %d, \"merchant_streams\": %d}\n",
		&s.observer.attempts, &s.observer.millis, &s.observer.drifts, len(s.buyerStreams), len(s.merchantStreams))
	return err
}

// showHealth reports whether this process can accept orders. It does not
// call the gateway: without it the shop can still serve pages.
func (s *shop) showHealth(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	status, text := http.StatusOK, "ok\n"
	if err := s.db.PingContext(ctx); err != nil {
		s.logger.ErrorContext(ctx, "the database does not respond", "error", err)
		status, text = http.StatusServiceUnavailable, "the database does not respond\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write([]byte(text))
	return err
}
