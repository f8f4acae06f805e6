// Package call makes create-invoice calls and lists the rules that they broke. The
// packages of the proof share it.
package call

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// What the servers of the proof and their clients agree on.
const (
	// Host is the one of the clients' base URL; the transport leads to where a
	// server really listens. Its length is the same in every run.
	Host = "127.0.0.1:8470"
	// Target is the order of the call that a fault is for.
	Target = "A-17"

	WithdrawalID     = "6d0c1b5e-2f83-4f6e-9a51-0c7f3a9be210"
	WithdrawalResult = `{"status":"COMPLETED","destination":"TVx","amount":"12.5","fee":"1","coin":"USDT","network":"Tron","withdrawRequestId":"` + WithdrawalID + `"}`
)

// MaxConns is how many connections an attempt may use. It may still be opening the last one when it
// ends.
const MaxConns = 4

// Order is a request for an invoice with every field.
func Order(id string) gateway.InvoiceRequest {
	return gateway.InvoiceRequest{
		OrderID: id, Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
		BaseCurrency: "usd", CoinSymbol: "USDT", NetworkName: "Tron",
	}
}

// InvoiceResult is the result of the servers for an order.
func InvoiceResult(order string) string {
	return fmt.Sprintf(`{"id":"inv-%s","orderId":%q,"status":"NEW"}`, order, order)
}

// Enveloped is a result in the envelope of a success.
func Enveloped(result string) string {
	return `{"message":"Operation was successful.","result":` + result + `,"meta":{}}`
}

// OrderIn returns the order that a posted body is for, or "" if it has none. It must have the key, or
// a key that begins with it.
func OrderIn(body []byte) string {
	var posted struct {
		OrderID string `json:"orderId"`
		APIKey  string `json:"apiKey"`
	}
	if json.Unmarshal(body, &posted) != nil || !strings.HasPrefix(posted.APIKey, invariant.Key) {
		return ""
	}
	return posted.OrderID
}

// A Result is how one create-invoice call ended, on both sides.
type Result struct {
	Order    string
	Result   string // of the response; empty for InvoiceResult(Order)
	Invoice  *gateway.Invoice
	Err      error
	Response *gateway.Response
	Record   *Record

	Repeatable bool // the gateway returns the first invoice of a repeated order, which is sent again
}

// Create makes the call that all of this is about.
func Create(ctx context.Context, client *gateway.Client, id string, record *Record, opts ...gateway.CallOption) Result {
	return Send(ctx, client, Order(id), record, opts...)
}

// Send is Create for a request.
func Send(ctx context.Context, client *gateway.Client, request gateway.InvoiceRequest, record *Record, opts ...gateway.CallOption) Result {
	r := Result{Order: request.OrderID, Response: &gateway.Response{}, Record: record}
	r.Invoice, r.Err = client.CreateInvoice(ctx, request, append(opts, gateway.WithResponse(r.Response))...)
	return r
}

// Outcome is the outcome that the client reports.
func (r Result) Outcome() gateway.Outcome { return gateway.OutcomeOf(r.Err) }

// Replayed reports whether an earlier call created the invoice.
func (r Result) Replayed() bool { return r.Invoice != nil && r.Invoice.Replayed }

// attempts is how many attempts the call made, at least one.
func (r Result) attempts() int {
	return max(r.Response.Attempts, 1)
}

// Violations lists the rules that r breaks: those of package invariant, and those that can be checked because each order
// has a response of its own. Who makes the call checks its time, the hosts, and what stays behind.
func (r Result) Violations() []string {
	seen, outcome := r.Record.Seen(), r.Outcome()
	if r.Replayed() {
		seen.Commits++ // by an earlier call
	}
	wrong := slices.Concat(seen.Violations, invariant.Broken(r.Invoice, r.Err), brokenInvoice(seen, r.Err, r.Repeatable))
	for _, rule := range []struct {
		holds bool
		text  string
	}{
		{r.Err != nil || r.equal(), "a success is not the response to this request, with equal data"},
		{outcome != gateway.OutcomeRejected || seen.Refusals > 0, "the response of another request is taken for a refusal of this one"},
		{!invariant.ShowsKey(*r.Response), "the key is in the Response"},
		{seen.Conns <= MaxConns*r.attempts(), "more than 4 connections an attempt"},
	} {
		if !rule.holds {
			wrong = append(wrong, rule.text)
		}
	}
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Sprintf("%+v, outcome %v, error %v", seen, outcome, r.Err))
	}
	return wrong
}

// brokenInvoice returns the rules for invoices alone that a call has broken. Seen is what its server has seen.
func brokenInvoice(seen Seen, err error, repeatable bool) (broken []string) {
	outcome := gateway.OutcomeOf(err)
	_, isDecode := err.(*gateway.DecodeError) //nolint:errorlint // one within an unknown outcome is right
	for _, rule := range []struct {
		holds bool
		text  string
	}{
		{seen.Commits <= 1, "an invoice was created twice"},
		{seen.Bodies <= 1 || repeatable, "an invoice was sent twice"},
		{err != nil || seen.Commits == 1, "a success without one invoice"},
		{outcome != gateway.OutcomeNotSent || seen.BodyBytes == 0, "a byte of the body arrived of an invoice that was not sent"},
		{err == nil || seen.Commits == 0 || outcome == gateway.OutcomeUnknown, "an invoice exists, and the outcome is not unknown"},
		{!isDecode, "a response that was not understood, and the outcome is not unknown"},
	} {
		if !rule.holds {
			broken = append(broken, rule.text)
		}
	}
	return broken
}

func (r Result) equal() bool {
	isOwn := r.Invoice != nil && (r.Invoice.OrderID == r.Order || r.Repeatable && strings.EqualFold(r.Invoice.OrderID, r.Order))
	return isOwn && string(r.Invoice.Raw) == cmp.Or(r.Result, InvoiceResult(r.Order))
}
