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

// An observer counts what the client does and keeps the drift that it has met.
// Its variables are its own, not those of the process, which several shops in
// one process would share.
type observer struct {
	attempts expvar.Map // by operation and status
	millis   expvar.Map // spent, by operation
	drifts   expvar.Int

	mu   sync.Mutex
	seen []driftSeen
}

// A driftSeen is a drift, and when it was met.
type driftSeen struct {
	gateway.Drift
	Count       int
	First, Last time.Time
}

// maxDrifts bounds how many different drifts are kept.
const maxDrifts = 50

func newObserver() *observer { return &observer{} }

// Attempt implements [gateway.Observer].
func (o *observer) Attempt(_ context.Context, a gateway.Attempt) {
	status := "no answer"
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
	i := slices.IndexFunc(o.seen, func(s driftSeen) bool { return s.Drift == d })
	switch {
	case i >= 0:
		o.seen[i].Count++
		o.seen[i].Last = now
	case len(o.seen) < maxDrifts:
		o.seen = append(o.seen, driftSeen{d, 1, now, now})
	}
}

// drift returns what was met so far.
func (o *observer) drift() []driftSeen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.seen)
}

// showMetrics writes the numbers in the form of expvar.
func (s *shop) showMetrics(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, err := fmt.Fprintf(w, "{\"gateway_attempts\": %s, \"gateway_milliseconds\": %s, \"gateway_drifts\": %s, \"live_streams\": %d, \"merchant_streams\": %d}\n",
		&s.observer.attempts, &s.observer.millis, &s.observer.drifts, len(s.streams), len(s.desks))
	return err
}

// showHealth says whether this process can take orders. It does not ask the
// gateway: with that away, a shop still shows its pages.
func (s *shop) showHealth(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	status, text := http.StatusOK, "ok\n"
	if err := s.db.PingContext(ctx); err != nil {
		s.logger.ErrorContext(ctx, "the database does not answer", "error", err)
		status, text = http.StatusServiceUnavailable, "the database does not answer\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write([]byte(text))
	return err
}
