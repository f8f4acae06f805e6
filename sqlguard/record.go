package sqlguard

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/orders"
)

// A storedRow is the JSON of the column record.
type storedRow struct {
	Held     *storedAttempt  `json:"held,omitzero"`
	Open     []storedAttempt `json:"open,omitzero"`
	Last     *storedAttempt  `json:"last,omitzero"`
	Invoices []storedAttempt `json:"invoices,omitzero"`
	Bare     bool            `json:"bare,omitzero"`
	Findings []storedFinding `json:"findings,omitzero"`
}

// A storedFinding is the JSON of a finding.
type storedFinding struct {
	Exists  bool    `json:"exists,omitzero"`
	By      string  `json:"by"`
	Note    string  `json:"note,omitzero"`
	At      int64   `json:"at"`
	Attempt int64   `json:"attempt"`
	Ended   []int64 `json:"ended,omitzero"`
}

// A storedAttempt is the JSON of an attempt. An invoice is kept byte for byte.
type storedAttempt struct {
	Name   int64 `json:"name,omitzero"`
	Found  bool  `json:"found,omitzero"`  // a person has recorded the invoice
	Silent bool  `json:"silent,omitzero"` // its process has not reported
	gateway.OrderRecord
	Request *storedRequest `json:"request,omitzero"` // replaces the request of the OrderRecord
	Invoice []byte         `json:"invoice,omitzero"`
}

// A storedRequest is the JSON of a request. Amounts are texts with every digit that they have, trailing
// zeros included.
type storedRequest struct {
	OrderID      string `json:"orderId"`
	Price        string `json:"price,omitempty"`
	Amount       string `json:"amount,omitempty"`
	BaseCurrency string `json:"baseCurrency,omitempty"`
	CoinSymbol   string `json:"coinSymbol,omitempty"`
	NetworkName  string `json:"networkName,omitempty"`
}

// maxRecord is how many bytes the column record may have.
const maxRecord = 4 << 20

// recordText returns the column record of a row. If it would be too large, it drops the oldest bodies of
// failures, then the oldest attempts of unknown outcome except the first, then the oldest findings, then further invoices.
func recordText(r row) ([]byte, error) {
	s := storedRow{Open: storedAttempts(r.Open), Invoices: storedAttempts(r.Invoices), Bare: r.Bare}
	for _, f := range r.Findings {
		s.Findings = append(s.Findings, storedFinding(f))
	}
	if len(s.Invoices) > 0 {
		s.Invoices[0].Invoice = nil // has a column
	}
	if r.Held != nil {
		s.Held = new(storedAttemptOf(0, *r.Held))
	}
	if r.Last != nil {
		s.Last = new(storedAttemptOf(0, *r.Last))
	}
	for {
		text, err := json.Marshal(s)
		if err != nil || len(text) <= maxRecord {
			return text, err
		}
		if !s.shrink() {
			return nil, fmt.Errorf("the record of the order has %d bytes, and the table keeps %d", len(text), maxRecord)
		}
	}
}

// shrink drops the most dispensable part, and reports whether there was one.
func (s *storedRow) shrink() bool {
	for i := range s.Open {
		if len(s.Open[i].Body) > 0 {
			s.Open[i].Body = nil
			return true
		}
	}
	switch {
	case len(s.Open) > 2:
		s.Open = append(s.Open[:1], s.Open[2:]...)
	case len(s.Findings) > 1:
		s.Findings = s.Findings[1:]
	case len(s.Invoices) > 2:
		s.Invoices = append(s.Invoices[:1], s.Invoices[2:]...)
	default:
		return false
	}
	return true
}

func storedAttempts(attempts []orders.Attempt[gateway.OrderRecord]) (all []storedAttempt) {
	for _, a := range attempts {
		stored := storedAttemptOf(a.Name, a.Record)
		stored.Found, stored.Silent = a.Found, a.Silent
		all = append(all, stored)
	}
	return all
}

func storedAttemptOf(name int64, r gateway.OrderRecord) storedAttempt {
	r.SentAt = r.SentAt.UTC()
	return storedAttempt{Name: name, OrderRecord: r, Request: storedRequestOf(r.Request), Invoice: r.Invoice}
}

func storedRequestOf(r gateway.InvoiceRequest) *storedRequest {
	if r.OrderID == "" {
		return nil
	}
	return &storedRequest{r.OrderID, amountText(r.Price), amountText(r.Amount), r.BaseCurrency, r.CoinSymbol, r.NetworkName}
}

// amountText does not depend on the variables of the package decimal.
func amountText(d decimal.Decimal) string {
	if d.IsZero() {
		return ""
	}
	return d.StringFixed(max(0, -d.Exponent()))
}

func readRecord(text []byte, r *row) error {
	var s storedRow
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("the column record: %w", err)
	}
	r.Bare = s.Bare
	for _, f := range s.Findings {
		r.Findings = append(r.Findings, orders.Finding(f))
	}
	var failure error
	record := func(a storedAttempt) gateway.OrderRecord {
		request, err := a.Request.request()
		failure = errors.Join(failure, err)
		r := a.OrderRecord
		r.Request, r.Invoice = request, a.Invoice
		return r
	}
	for _, a := range s.Open {
		r.Open = append(r.Open, orders.Attempt[gateway.OrderRecord]{Name: a.Name, Silent: a.Silent, Record: record(a)})
	}
	for _, a := range s.Invoices {
		r.Invoices = append(r.Invoices, orders.Attempt[gateway.OrderRecord]{Name: a.Name, Found: a.Found, Record: record(a)})
	}
	if s.Held != nil {
		r.Held = new(record(*s.Held))
	}
	if s.Last != nil {
		r.Last = new(record(*s.Last))
	}
	return failure
}

func (s *storedRequest) request() (r gateway.InvoiceRequest, err error) {
	if s == nil {
		return r, nil
	}
	r = gateway.InvoiceRequest{OrderID: s.OrderID, BaseCurrency: s.BaseCurrency, CoinSymbol: s.CoinSymbol, NetworkName: s.NetworkName}
	for text, amount := range map[*string]*decimal.Decimal{&s.Price: &r.Price, &s.Amount: &r.Amount} {
		if *text == "" {
			continue
		}
		if *amount, err = decimal.NewFromString(*text); err != nil {
			return gateway.InvoiceRequest{}, fmt.Errorf("the column record: %w", err)
		}
	}
	return r, nil
}
