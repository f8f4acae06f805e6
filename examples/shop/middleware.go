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

// A handlerFunc is an HTTP handler that returns its error to be rendered.
type handlerFunc func(w http.ResponseWriter, r *http.Request) error

// A problem is an error with its own page.
type problem struct {
	status      int
	title, text string
}

func (p *problem) Error() string { return p.title }

func notFound() error {
	return &problem{http.StatusNotFound, "Page not found", "The address may be wrong, or the page belongs to another customer."}
}

func notAllowed(w http.ResponseWriter, allowed string) error {
	w.Header().Set("Allow", allowed)
	return &problem{http.StatusMethodNotAllowed, "Method not allowed", "This address does not accept this kind of request."}
}

func badInput(text string) error {
	return &problem{http.StatusUnprocessableEntity, "Invalid input", text}
}

// maxForm limits the body of a request, in bytes; every body is a form.
const maxForm = 16 << 10

// policy lets a page load from its own host only, and run no inline script.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// withMiddleware wraps all routes. From the outside in: request ID and log,
// recovery, headers, body limit, cross-origin protection, and error pages
// for requests without a route.
func (s *shop) withMiddleware(mux *http.ServeMux) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(s.handle(func(http.ResponseWriter, *http.Request) error {
		return &problem{http.StatusForbidden, "Request from another site", "A form of this shop is accepted only from a page of this shop."}
	}))
	return s.withLogging(s.withRecovery(withHeaders(withBodyLimit(protection.Handler(s.withErrorPages(mux))))))
}

// handle renders the error of a handler as a page, unless the client has
// disconnected or part of a response has been written.
func (s *shop) handle(h handlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response := withStatus(w)
		switch err := h(response, r); {
		case err == nil:
		case response.status != 0 || errors.Is(r.Context().Err(), context.Canceled):
			s.logger.InfoContext(r.Context(), "client disconnected", "path", r.URL.Path, "error", err)
		default:
			s.showError(w, r, err)
		}
	})
}

// withTimeout limits the time a page waits for its dependencies. An invoice
// that is being sent is not canceled.
func (s *shop) withTimeout(h handlerFunc) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), s.cfg.pageTimeout)
		defer cancel()
		return h(w, r.WithContext(ctx))
	}
}

// showError renders a problem. Any other error comes from the database or
// the gateway and may be temporary; its text goes to the log only.
func (s *shop) showError(w http.ResponseWriter, r *http.Request, err error) {
	p, isProblem := errors.AsType[*problem](err)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isProblem:
	case tooLarge:
		p = &problem{http.StatusRequestEntityTooLarge, "Request too large", "No form of this shop is this large."}
	default:
		s.logger.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		p = &problem{http.StatusServiceUnavailable, "Temporarily unavailable", "No order has been lost. Please try again in a moment."}
	}
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	view := map[string]any{"Text": p.text, "RequestID": requestID(r.Context())}
	if err := s.render(w, r, p.status, "problem", p.title, view); err != nil {
		http.Error(w, p.title, p.status)
	}
}

// withErrorPages renders a page for paths and methods without a route.
func (s *shop) withErrorPages(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		response := &headerOnly{header: http.Header{}}
		h.ServeHTTP(response, r)
		if response.status == http.StatusMethodNotAllowed {
			s.showError(w, r, notAllowed(w, response.header.Get("Allow")))
			return
		}
		s.showError(w, r, notFound())
	})
}

// headerOnly records the mux's response without its body.
type headerOnly struct {
	header http.Header
	status int
}

func (h *headerOnly) Header() http.Header         { return h.header }
func (h *headerOnly) WriteHeader(status int)      { h.status = status }
func (h *headerOnly) Write(p []byte) (int, error) { return len(p), nil }

func withBodyLimit(next http.Handler) http.Handler { return http.MaxBytesHandler(next, maxForm) }

func withHeaders(next http.Handler) http.Handler {
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

// withRecovery responds to a request whose handler panicked. A response that
// has started is aborted, so that the client does not take it for complete.
func (s *shop) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response := withStatus(w)
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				s.logger.ErrorContext(r.Context(), "handler panicked", "panic", v, "stack", string(debug.Stack()))
				if response.status != 0 {
					panic(http.ErrAbortHandler)
				}
				s.showError(w, r, &problem{http.StatusInternalServerError, "Internal error", "The error is in our log."})
			}
		}()
		next.ServeHTTP(response, r)
	})
}

// withLogging assigns a request ID, which is in the response header and in
// every log record of the request, including those of the gateway client.
func (s *shop) withLogging(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, started, response := rand.Text()[:12], time.Now(), withStatus(w)
		w.Header().Set("X-Request-Id", id)
		ctx := context.WithValue(r.Context(), requestIDKey{}, id)
		defer func() { // aborted responses are logged, too
			s.logger.InfoContext(ctx, "request", "method", r.Method, "path", r.URL.Path, "status", cmp.Or(response.status, http.StatusOK), "duration", time.Since(started))
		}()
		next.ServeHTTP(response, r.WithContext(ctx))
	})
}

// A statusWriter records the status of a response, 0 until it has started.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// withStatus returns w as a statusWriter, and wraps it if necessary.
func withStatus(w http.ResponseWriter) *statusWriter {
	if response, ok := w.(*statusWriter); ok {
		return response
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

// Unwrap implements the interface of [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

type requestIDKey struct{}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// withRequestID is a handler that adds the request ID to log records.
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
