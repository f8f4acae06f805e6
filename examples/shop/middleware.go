package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// A handlerFunc is a handler that leaves it to others to show its error.
type handlerFunc func(w http.ResponseWriter, r *http.Request) error

// A problem is an error with a page of its own.
type problem struct {
	status      int
	title, text string
}

func (p *problem) Error() string { return p.title }

func notFound() error {
	return &problem{http.StatusNotFound, "There is no such page", "The address may be mistyped, or the page is somebody else's."}
}

func notAllowed(w http.ResponseWriter, allowed string) error {
	w.Header().Set("Allow", allowed)
	return &problem{http.StatusMethodNotAllowed, "That can not be done here", "This address does not take a request of that kind."}
}

func badInput(text string) error {
	return &problem{http.StatusUnprocessableEntity, "That can not be taken", text}
}

// maxForm bounds the body of a request, in bytes: forms are all there is.
const maxForm = 16 << 10

// policy lets a page load from its own host only, and run no inline script.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// around puts around all routes what they have in common. From the outside in:
// a number and a line in the log, a page for a panic, headers, a bound for the
// body, no forms from other sites, and pages for what has no route.
func (s *shop) around(mux *http.ServeMux) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(s.handle(func(http.ResponseWriter, *http.Request) error {
		return &problem{http.StatusForbidden, "That came from another site", "A form of this shop counts only when it is sent from a page of this shop."}
	}))
	return s.logged(s.recovered(headed(bounded(protection.Handler(s.routed(mux))))))
}

// handle shows the error of a handler as a page, unless there is nobody left to
// see it, or half of another page is there.
func (s *shop) handle(h handlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := withStatus(w)
		switch err := h(answer, r); {
		case err == nil:
		case answer.status != 0 || errors.Is(r.Context().Err(), context.Canceled):
			s.logger.InfoContext(r.Context(), "a visitor has left", "path", r.URL.Path, "error", err)
		default:
			s.showError(w, r, err)
		}
	})
}

// timely ends what a page waits for after some time. An invoice that is being
// sent goes on.
func (s *shop) timely(h handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), s.cfg.page)
		defer cancel()
		return h(w, r.WithContext(ctx))
	}
}

// showError writes the page of a problem. Any other error is one of the
// database or the gateway, which may pass: its text is for the log alone.
func (s *shop) showError(w http.ResponseWriter, r *http.Request, err error) {
	p, known := errors.AsType[*problem](err)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case known:
	case tooLarge:
		p = &problem{http.StatusRequestEntityTooLarge, "That is too much", "No form of this shop is that large."}
	default:
		s.logger.ErrorContext(r.Context(), "a page failed", "path", r.URL.Path, "error", err)
		p = &problem{http.StatusServiceUnavailable, "That does not work just now", "Nothing that you did is lost. Please try again in a moment."}
	}
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	view := map[string]any{"Text": p.text, "RequestID": requestID(r.Context())}
	if err := s.render(w, r, p.status, "problem", p.title, view); err != nil {
		http.Error(w, p.title, p.status)
	}
}

// routed gives paths and methods without a route a page instead of a line.
func (s *shop) routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		answer := &headerOnly{header: http.Header{}}
		h.ServeHTTP(answer, r)
		if answer.status == http.StatusMethodNotAllowed {
			s.showError(w, r, notAllowed(w, answer.header.Get("Allow")))
			return
		}
		s.showError(w, r, notFound())
	})
}

// headerOnly keeps what the mux would have answered, without its body.
type headerOnly struct {
	header http.Header
	status int
}

func (h *headerOnly) Header() http.Header         { return h.header }
func (h *headerOnly) WriteHeader(status int)      { h.status = status }
func (h *headerOnly) Write(p []byte) (int, error) { return len(p), nil }

func bounded(next http.Handler) http.Handler { return http.MaxBytesHandler(next, maxForm) }

func headed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// recovered answers a request whose handler has panicked. An answer that has
// begun is broken off: it shall not look like a whole one.
func (s *shop) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := withStatus(w)
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				s.logger.ErrorContext(r.Context(), "a handler panicked", "panic", v, "stack", string(debug.Stack()))
				if answer.status != 0 {
					panic(http.ErrAbortHandler)
				}
				s.showError(w, r, &problem{http.StatusInternalServerError, "Something is broken here", "It is our fault, and it is in our log."})
			}
		}()
		next.ServeHTTP(answer, r)
	})
}

// logged gives a request a number, which is in its answer and in every line
// that is logged for it, those of the gateway's client included.
func (s *shop) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, begun, answer := rand.Text()[:12], time.Now(), withStatus(w)
		w.Header().Set("X-Request-Id", id)
		ctx := context.WithValue(r.Context(), requestIDKey{}, id)
		defer func() { // an answer that was broken off has its line, too
			s.logger.InfoContext(ctx, "request", "method", r.Method, "path", r.URL.Path, "status", cmp.Or(answer.status, http.StatusOK), "duration", time.Since(begun))
		}()
		next.ServeHTTP(answer, r.WithContext(ctx))
	})
}

// A statusWriter remembers the status of an answer, 0 before it has begun.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// withStatus returns w as one whose status is remembered, if it is not one yet.
func withStatus(w http.ResponseWriter) *statusWriter {
	if answer, ok := w.(*statusWriter); ok {
		return answer
	}
	return &statusWriter{ResponseWriter: w}
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type requestIDKey struct{}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// withRequestID adds the number of the request to what is logged for it.
type withRequestID struct{ slog.Handler }

func (h withRequestID) Handle(ctx context.Context, record slog.Record) error {
	if id := requestID(ctx); id != "" {
		record.AddAttrs(slog.String("request", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h withRequestID) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withRequestID{h.Handler.WithAttrs(attrs)}
}

func (h withRequestID) WithGroup(name string) slog.Handler {
	return withRequestID{h.Handler.WithGroup(name)}
}
