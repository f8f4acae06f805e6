package sqlguard

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/shopspring/decimal"
)

// A storedRequest is the JSON of the column request. Amounts are texts with every digit that
// they have, trailing zeros included.
type storedRequest struct {
	OrderID      string `json:"orderId"`
	Price        string `json:"price,omitempty"`
	Amount       string `json:"amount,omitempty"`
	BaseCurrency string `json:"baseCurrency,omitempty"`
	CoinSymbol   string `json:"coinSymbol,omitempty"`
	NetworkName  string `json:"networkName,omitempty"`
}

// requestText returns the JSON of a request in one line, or nil for the zero request.
func requestText(r gateway.InvoiceRequest) any {
	if r.OrderID == "" {
		return nil
	}
	text, _ := json.Marshal(storedRequest{r.OrderID, amountText(r.Price), amountText(r.Amount), r.BaseCurrency, r.CoinSymbol, r.NetworkName})
	return string(text)
}

// amountText does not depend on the variables of the package decimal.
func amountText(d decimal.Decimal) string {
	if d.IsZero() {
		return ""
	}
	return d.StringFixed(max(0, -d.Exponent()))
}

func readRequest(text string) (r gateway.InvoiceRequest, err error) {
	if text == "" {
		return r, nil
	}
	var s storedRequest
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return r, fmt.Errorf("the column request: %w", err)
	}
	r = gateway.InvoiceRequest{OrderID: s.OrderID, BaseCurrency: s.BaseCurrency, CoinSymbol: s.CoinSymbol, NetworkName: s.NetworkName}
	for text, amount := range map[*string]*decimal.Decimal{&s.Price: &r.Price, &s.Amount: &r.Amount} {
		if *text == "" {
			continue
		}
		if *amount, err = decimal.NewFromString(*text); err != nil {
			return gateway.InvoiceRequest{}, fmt.Errorf("the column request: %w", err)
		}
	}
	return r, nil
}

// recordArgs are the arguments of the statement end that are about the record: sent_at,
// status, body, cause, request and request_id, and of a success the invoice.
func recordArgs(r gateway.OrderRecord) []any {
	var sent, status any
	if !r.SentAt.IsZero() {
		sent = r.SentAt.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	if r.StatusCode != 0 {
		status = r.StatusCode
	}
	args := []any{sent, status, bytesOrNull(r.Body), textOrNull(r.Cause), requestText(r.Request), textOrNull(r.RequestID)}
	if r.Outcome == gateway.OutcomeSucceeded {
		args = append(args, bytesOrNull(r.Invoice))
	}
	return args
}

func bytesOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// textOrNull returns a text that both databases can store in one line, which PostgreSQL does not do
// with every sequence of bytes.
func textOrNull(text string) any {
	if text == "" {
		return nil
	}
	return strings.NewReplacer("\x00", "\uFFFD", "\n", " ").Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// A storedRecord has what the statements select of a record, see recordText. Each line of
// the requests and ids is that of an attempt, the latest first.
type storedRecord struct {
	known                int // keptNothing and so on
	requests, requestIDs string
	begun                time.Time
	record               gateway.OrderRecord // without the request and its id
}

// dest are where the columns are scanned to.
func (s *storedRecord) dest() []any {
	r := &s.record
	return []any{&s.known, &s.requests, &s.requestIDs, stamp{&s.begun}, stamp{&r.SentAt}, &r.StatusCode, &r.Body, &r.Cause, (*[]byte)(&r.Invoice), stamp{&r.CreatedAt}}
}

// latest is the record of an order in a state.
func (s *storedRecord) latest(state State) (r gateway.OrderRecord, err error) {
	r = s.record
	request, _, _ := strings.Cut(s.requests, "\n")
	r.Request, err = readRequest(request)
	r.RequestID, _, _ = strings.Cut(s.requestIDs, "\n")
	switch state {
	case StateInFlight:
		r = gateway.OrderRecord{Request: r.Request, RequestID: r.RequestID}
	case StateUnknown:
		s.undecided(&r)
	case StateCreated:
		r.Outcome = gateway.OutcomeSucceeded
	}
	return r, err
}

// undecided is what is known of an attempt without a known outcome, as the statement begin has it in
// the columns.
func (s *storedRecord) undecided(r *gateway.OrderRecord) {
	r.Invoice = nil
	switch s.known {
	case keptByBegin:
		r.Cause = noOutcome
	case keptOfEarlier:
		_, id, _ := strings.Cut(s.requestIDs, "\n")
		r.Cause = noOutcomeAgain + id + ": " + r.Cause
	}
	if s.known != keptByEnd {
		r.SentAt = s.begun
	}
}

// earlier is the record of an unknown order that was begun since; nil if it was not unknown.
func (s *storedRecord) earlier() (*gateway.OrderRecord, error) {
	if s.known == keptNothing {
		return nil, nil
	}
	before := *s
	_, before.requests, _ = strings.Cut(s.requests, "\n")
	_, before.requestIDs, _ = strings.Cut(s.requestIDs, "\n")
	r, err := before.latest(StateUnknown)
	return &r, err
}

// A stamp scans a time from a time or a text, and the zero time from NULL or an empty text.
type stamp struct{ at *time.Time }

// Scan implements [sql.Scanner].
func (s stamp) Scan(value any) (err error) {
	*s.at = time.Time{}
	switch value := value.(type) {
	case nil:
	case time.Time:
		*s.at = value.UTC()
	case string:
		if value != "" {
			*s.at, err = time.Parse(time.RFC3339Nano, value)
		}
	default:
		return fmt.Errorf("a time has type %T, want string", value)
	}
	return err
}
