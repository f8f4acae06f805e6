package main

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"net/http"
	"runtime/debug"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/shopspring/decimal"
)

//go:embed web
var web embed.FS

// A view is the data of the layout.
type view struct {
	Title    string
	Demo     bool
	Merchant string // the name of the merchant; on the merchant's pages only
	Page     any    // the data of the page itself
}

// render writes a page. It executes the whole template first, so that a template error
// does not leave a partial page.
func (s *shop) render(w http.ResponseWriter, r *http.Request, status int, name, title string, page any) error {
	var text bytes.Buffer
	if err := s.pages.ExecuteTemplate(&text, name+".html", view{title, s.demo != nil, merchant(r.Context()), page}); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := text.WriteTo(w)
	return err
}

// A problem is an error with its own page.
type problem struct {
	status      int
	title, text string
}

func (p *problem) Error() string { return p.title }

func notFound() *problem {
	return &problem{http.StatusNotFound, "Page not found", "The address may be wrong, or the page is another customer's."}
}

func badInput(text string) error {
	return &problem{http.StatusUnprocessableEntity, "This cannot be accepted", text}
}

// A handler is an HTTP handler that may fail.
type handler func(http.ResponseWriter, *http.Request) error

// page returns an HTTP handler that reads the form, bounds the time of a page, and shows
// an error as a page. An invoice that is being sent goes on.
func (s *shop) page(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.cfg.pageTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		written := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		err := s.try(h, written, r)
		if err == nil {
			return
		}
		if written.Status() != 0 {
			s.logger.ErrorContext(ctx, "response cut off", "request", middleware.GetReqID(ctx), "error", err)
			panic(http.ErrAbortHandler) // the reader sees that the response is not complete
		}
		s.showError(w, r, err)
	}
}

// try reads the form and calls a handler. A panic is an error of that request.
func (s *shop) try(h handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if cause := recover(); cause == http.ErrAbortHandler {
			panic(cause)
		} else if cause != nil {
			s.logger.ErrorContext(r.Context(), "panic", "request", middleware.GetReqID(r.Context()), "cause", cause, "stack", string(debug.Stack()))
			err = &problem{http.StatusInternalServerError, "Something went wrong", "This is a mistake of the shop. No order is lost. Please tell us the number below."}
		}
	}()
	if err := r.ParseForm(); err != nil {
		return errors.Join(badInput("The form cannot be read."), err)
	}
	return h(w, r)
}

// redirect makes the browser get another page.
func redirect(w http.ResponseWriter, r *http.Request, to string) error {
	http.Redirect(w, r, to, http.StatusSeeOther) // #nosec G710 -- a path of this shop
	return nil
}

// showError shows a problem. Any other error comes from the database or the gateway and
// may pass; its text goes to the log only.
func (s *shop) showError(w http.ResponseWriter, r *http.Request, err error) {
	p, isProblem := errors.AsType[*problem](err)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	id := middleware.GetReqID(r.Context())
	switch {
	case tooLarge:
		p = &problem{http.StatusRequestEntityTooLarge, "Too large", "No form of this shop is this large."}
	case isProblem:
	case errors.Is(err, sql.ErrNoRows):
		p = notFound()
	default:
		s.logger.ErrorContext(r.Context(), "request failed", "request", id, "path", r.URL.Path, "error", err)
		p = &problem{http.StatusServiceUnavailable, "Not available at the moment", "No order is lost. Please try again in a moment."}
		w.Header().Set("Retry-After", "5")
	}
	if err := s.render(w, r, p.status, "problem", p.title, map[string]string{"Text": p.text, "RequestID": id}); err != nil {
		http.Error(w, p.title, p.status)
	}
}

// formatPrice formats a price.
func formatPrice(price decimal.Decimal, currency string) string {
	return map[string]string{"usd": "$", "eur": "€"}[currency] + grouped(price.StringFixed(2))
}

// formatRate formats the rate of a coin in US dollars, for a page and not for a calculation.
func formatRate(rate decimal.Decimal) string {
	if rate.LessThan(decimal.NewFromInt(1)) {
		return rate.String()
	}
	return grouped(rate.StringFixed(2))
}

// grouped puts a comma before each three digits of the whole part of a number.
func grouped(number string) string {
	whole, fraction, found := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		whole += "." + fraction
	}
	return whole
}

func productName(id string) string {
	if p, ok := productByID(id); ok {
		return p.Name
	}
	return id
}

// maxPrintable limits a text from outside that is stored or shown, in bytes.
const maxPrintable = 2048

// printable removes what cannot be shown or stored from a text.
func printable(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxPrintable)], "")
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return -1
	}, text)
}

// singleLine returns a text as one printable line, or "" if it has more than most
// characters.
func singleLine(text string, most int) string {
	line := strings.Join(strings.Fields(printable(text)), " ")
	if len(text) > maxPrintable || utf8.RuneCountInString(line) > most {
		return ""
	}
	return line
}
