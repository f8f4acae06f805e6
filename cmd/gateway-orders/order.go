package main

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/sqlguard"
)

// timeText is a time in UTC to the second; "" for none.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// amountText is an amount with all its digits; "" for none.
func amountText(d decimal.Decimal) string {
	if d.IsZero() {
		return ""
	}
	return d.StringFixed(max(0, -d.Exponent()))
}

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
}

func priceOf(r gateway.InvoiceRequest) string { return joined(amountText(r.Price), r.BaseCurrency) }

func amountOf(r gateway.InvoiceRequest) string {
	text := joined(amountText(r.Amount), r.CoinSymbol)
	if r.NetworkName != "" {
		text += " on " + r.NetworkName
	}
	return text
}

// An orderJSON is an order in JSON. No member is ever renamed or redefined; what is not known is
// left out.
type orderJSON struct {
	OrderID      string    `json:"orderId"`
	Merchant     string    `json:"merchant,omitempty"`
	State        string    `json:"state"`
	Gateway      string    `json:"gateway,omitempty"`
	Attempts     int       `json:"attempts"`
	UnknownSince time.Time `json:"unknownSince,omitzero"`
	Begun        time.Time `json:"begun,omitzero"`
	Ended        time.Time `json:"ended,omitzero"`
	Created      time.Time `json:"created,omitzero"`

	Price        string `json:"price,omitempty"`
	Amount       string `json:"amount,omitempty"`
	BaseCurrency string `json:"baseCurrency,omitempty"`
	CoinSymbol   string `json:"coinSymbol,omitempty"`
	NetworkName  string `json:"networkName,omitempty"`

	RequestID string          `json:"requestId,omitempty"`
	SentAt    time.Time       `json:"sentAt,omitzero"`
	Status    int             `json:"status,omitempty"`
	Body      string          `json:"body,omitempty"`
	Cause     string          `json:"cause,omitempty"`
	Invoice   json.RawMessage `json:"invoice,omitempty"`

	Others  []json.RawMessage `json:"others,omitempty"`  // further invoices of the order, which should not be; null if it is not known what one says
	Earlier []attemptJSON     `json:"earlier,omitempty"` // other attempts of unknown outcome

	Resolved   time.Time `json:"resolved,omitzero"`
	ResolvedBy string    `json:"resolvedBy,omitempty"`
	Resolution string    `json:"resolution,omitempty"` // exists or absent
	Note       string    `json:"note,omitempty"`
	Token      string    `json:"token,omitempty"` // of an unknown order: for resolve --token
}

// An attemptJSON is an attempt of unknown outcome before the last one.
type attemptJSON struct {
	RequestID string    `json:"requestId,omitempty"`
	SentAt    time.Time `json:"sentAt,omitzero"`
	Status    int       `json:"status,omitempty"`
	Cause     string    `json:"cause,omitempty"`
}

// Texts of a resolution.
const (
	foundExists = "exists"
	foundAbsent = "absent"
)

func toJSON(o sqlguard.Order) orderJSON {
	r := o.Record
	j := orderJSON{
		OrderID: o.ID, Merchant: o.Merchant, State: string(o.State), Gateway: o.Gateway, Attempts: o.Attempts,
		UnknownSince: o.Since, Begun: o.Begun, Ended: o.Ended, Created: o.Created,
		Price: amountText(r.Request.Price), Amount: amountText(r.Request.Amount), BaseCurrency: r.Request.BaseCurrency,
		CoinSymbol: r.Request.CoinSymbol, NetworkName: r.Request.NetworkName,
		RequestID: r.RequestID, SentAt: r.SentAt, Status: r.StatusCode, Body: string(r.Body), Cause: r.Cause, Invoice: r.Invoice,
		Resolved: o.Resolved, ResolvedBy: o.Resolution.By, Note: o.Resolution.Note, Token: o.Token(),
	}
	for _, a := range o.Earlier {
		j.Earlier = append(j.Earlier, attemptJSON{a.RequestID, a.SentAt, a.StatusCode, a.Cause})
	}
	for _, other := range r.Others {
		j.Others = append(j.Others, jsonOrNull(other))
	}
	if j.Invoice != nil {
		j.Invoice = jsonOrNull(j.Invoice)
	}
	if !o.Resolved.IsZero() {
		if j.Resolution = foundAbsent; o.Resolution.Exists {
			j.Resolution = foundExists
		}
	}
	return j
}

// jsonOrNull is JSON. Something else may have written the row, and an invalid text would fail the whole output.
func jsonOrNull(text json.RawMessage) json.RawMessage {
	if !json.Valid(text) {
		return json.RawMessage("null")
	}
	return text
}
