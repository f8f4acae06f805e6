package main

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

//go:embed web
var web embed.FS

// pages are the templates by name, each in the common layout.
type pages map[string]*template.Template

func parsePages() (pages, error) {
	files, err := fs.Glob(web, "web/pages/*.html")
	if err != nil {
		return nil, err
	}
	all := pages{}
	for _, file := range files {
		page := template.New("layout.html").Funcs(template.FuncMap{"price": formatPrice, "time": formatTime, "amount": formatAmount, "product": productName})
		if page, err = page.ParseFS(web, "web/layout.html", file); err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(path.Base(file), ".html")] = page
	}
	return all, nil
}

// A view is the data of the layout.
type view struct {
	Title    string
	Demo     bool
	Merchant string // the name of the merchant; on the merchant's pages only
	Refresh  int    // the interval at which the page reloads, in seconds; 0 for never
	Page     any    // the data of the page itself
}

// render writes a page. It executes the whole template first, so that a
// template error does not leave a partial page.
func (s *shop) render(w http.ResponseWriter, r *http.Request, status int, name, title string, page any) error {
	v := view{Title: title, Demo: s.demo, Merchant: merchant(r.Context()), Page: page}
	if waits, ok := page.(interface{ refresh() int }); ok {
		v.Refresh = waits.refresh()
	}
	var text bytes.Buffer
	if err := s.pages[name].Execute(&text, v); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := text.WriteTo(w)
	return err
}

// showStatic serves the stylesheet, the script and the images.
func (s *shop) showStatic(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	text, err := fs.ReadFile(web, "web/static/"+name)
	if err != nil {
		return notFound()
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Cache-Control", "max-age=300")
	_, err = w.Write(text) // #nosec G705 -- a file of this program
	return err
}

// formatPrice formats a price.
func formatPrice(price decimal.Decimal, currency string) string {
	sign := map[string]string{"usd": "$", "eur": "€"}[currency]
	return sign + price.StringFixed(2)
}

// formatAmount formats an amount of a coin, without exponent or rounding.
func formatAmount(amount decimal.Decimal) string { return amount.String() }

// formatTime formats a time, or returns a dash for the zero time.
func formatTime(at any) string {
	t, _ := at.(time.Time)
	if s, ok := at.(timestamp); ok {
		t = s.Time
	}
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2 Jan 2006, 15:04:05 UTC")
}

func productName(id string) string {
	if p, ok := productByID(id); ok {
		return p.Name
	}
	return id
}
