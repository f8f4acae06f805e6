package main

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
	"github.com/cryptogw/gateway/sqlguard/export"
)

// This file is for an incident: the orders to look up at the gateway, a page at a time,
// and how to end many of them by a file that the gateway's operator exports.

// A pendingPage has some of the orders to look up, oldest first.
type pendingPage struct {
	Query   url.Values
	Summary sqlguard.PendingSummary
	Orders  []sqlguard.Order
	Own     map[string]order // those of the shop; another program may use the same guard
	Next    string           // the query of the next page; "" if there is none
}

// showPending shows a page of the orders to look up. It takes the same few statements
// however many there are.
func (s *shop) showPending(w http.ResponseWriter, r *http.Request) (err error) {
	page := pendingPage{Query: r.URL.Query()}
	after := sqlguard.Order{Merchant: page.Query.Get("merchant"), ID: page.Query.Get("after")}
	if after.ID != "" {
		if after.Since, err = time.Parse(time.RFC3339Nano, page.Query.Get("since")); err != nil {
			return badInput("This is not the address of a page.")
		}
	}
	page.Orders, err = s.guard.Pending(r.Context(), sqlguard.PendingQuery{Most: pageSize + 1, After: after})
	if err != nil {
		return err
	}
	if len(page.Orders) > pageSize {
		page.Orders = page.Orders[:pageSize]
		last := page.Orders[pageSize-1]
		page.Next = "?" + url.Values{"merchant": {last.Merchant}, "after": {last.ID}, "since": {last.Since.Format(time.RFC3339Nano)}}.Encode()
	}
	var err1, err2 error
	page.Own, err1 = s.db.ordersByID(r.Context(), page.Orders)
	page.Summary, err2 = s.guard.PendingSummary(r.Context())
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "pending", "Orders to look up", page)
}

// A reconcilePage shows what an export says of the orders.
type reconcilePage struct {
	Form      url.Values
	Counts    map[sqlguard.Class]int
	Ends      int                   // how many orders it ends
	Ended     int                   // how many of them it has ended
	Others    []sqlguard.Difference // the first of those to ask the gateway's operator about
	Undecided []sqlguard.Undecided  // the first of those that it does not decide
}

// reconcile shows what an export of the gateway says of the orders and, once the merchant
// has seen that, ends those of which it is sure. The page has the text of the export, so
// that what is done is what was shown.
func (s *shop) reconcile(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseMultipartForm(maxExport); err != nil { // #nosec G120 -- every body is limited by middleware.RequestSize
		return errors.Join(badInput("The form cannot be read."), err)
	}
	statement, err := readStatement(r)
	if err != nil {
		return err
	}
	page, apply := reconcilePage{Form: r.PostForm, Counts: map[sqlguard.Class]int{}}, r.PostForm.Has("apply")
	untouched := strings.FieldsFunc(r.PostForm.Get("untouched"), func(c rune) bool { return c == ',' || c == ' ' })
	result, err := s.guard.Reconcile(r.Context(), statement, sqlguard.ReconcileOptions{Apply: apply, By: merchant(r.Context()), Margin: s.cfg.transit, Untouched: untouched})
	if invalid, ok := errors.AsType[*gateway.ArgumentError](err); ok {
		return badInput("Nothing was recorded: " + invalid.Error())
	}
	if err != nil && result.Differences == nil {
		return err
	}
	for _, d := range result.Differences {
		page.Counts[d.Class]++
		switch {
		case d.Class != sqlguard.ClassExists && d.Class != sqlguard.ClassAbsent:
			page.Others = append(page.Others, d)
			continue
		case d.Ended:
			page.Ended++
		}
		page.Ends++
	}
	page.Counts["not decided by this export"] = len(result.Undecided)
	for _, row := range statement.Rows {
		if row.Fault != "" {
			page.Counts["rows that cannot be read whole"]++
		}
	}
	page.Others, page.Undecided = page.Others[:min(len(page.Others), pageSize)], result.Undecided[:min(len(result.Undecided), pageSize)]
	if err != nil { // the page says how many were ended
		s.logger.ErrorContext(r.Context(), "the rest of an export was not applied", "ended", page.Ended, "of", page.Ends, "error", err)
	}
	return s.render(w, r, http.StatusOK, "reconcile", "What the export says", page)
}

// readStatement reads the export of a form: its file or, when that was shown, its text.
func readStatement(r *http.Request) (sqlguard.Statement, error) {
	var statement sqlguard.Statement
	if file, _, err := r.FormFile("file"); err == nil {
		text, err := io.ReadAll(file) // of a body that is limited
		if err := errors.Join(err, file.Close()); err != nil {
			return statement, err
		}
		r.PostForm.Set("export", string(text))
	}
	field := r.PostForm.Get
	var errs [2]error
	statement.From, errs[0] = time.Parse("2006-01-02T15:04", cmp.Or(field("from"), "0001-01-01T00:00"))
	statement.Until, errs[1] = time.Parse("2006-01-02T15:04", cmp.Or(field("until"), "0001-01-01T00:00"))
	if errs != [2]error{} {
		return statement, badInput("A time must be written as 2006-12-31T23:59, in UTC.")
	}
	file, err := export.Read(strings.NewReader(field("export")), export.Settings{
		Order: field("order_id"), Invoice: field("invoice_id"), Created: field("created_at"), Price: field("price"), Amount: field("amount"), State: field("state"),
	})
	if err != nil {
		return statement, badInput("Nothing was recorded: the export cannot be used: " + printable(err.Error()))
	}
	statement.Rows = file.Rows
	return statement, nil
}
