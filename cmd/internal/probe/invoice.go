package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cryptogw/gateway"
)

// An Invoice is the request for one invoice, and what the client makes of the response.
type Invoice struct {
	Request    gateway.InvoiceRequest `json:"request"`
	Outcome    gateway.Outcome        `json:"outcome"`           // for the client without further options
	Proof      string                 `json:"proof"`             // why the outcome is so
	Status     int                    `json:"status"`            // the HTTP status; 0 if there was no response
	Message    string                 `json:"message"`           // of the envelope, or of an error
	Result     json.RawMessage        `json:"result"`            // without the key; without an envelope the beginning of the body, if it is JSON
	Unexpected []string               `json:"unexpected"`        // the places that differ from the documentation, and how
	Decoder    string                 `json:"decoder,omitempty"` // a function for WithInvoiceDecoder, in Go; empty if no member looks like an id, an address or a link
	Decoded    string                 `json:"decoded,omitempty"` // the outcome with that function
	Advice     []string               `json:"advice"`            // what to do next
}

// codeOf returns the form of the request in Go.
func codeOf(f gateway.InvoiceFormat) string {
	var set []string
	if f.LowerCaseKeyName {
		set = append(set, "LowerCaseKeyName: true")
	}
	if f.Numbers {
		set = append(set, "Numbers: true")
	}
	return "gateway.InvoiceFormat{" + strings.Join(set, ", ") + "}"
}

type newClient func(...gateway.Option) (*gateway.Client, error)

// CreateInvoice creates one invoice, and reports what the client makes of the response, and would make of it with other
// options. It sends only one request. It returns the error of the call.
func CreateInvoice(ctx context.Context, newClient newClient, r gateway.InvoiceRequest, form gateway.InvoiceFormat) (Invoice, error) {
	i := Invoice{Request: r, Unexpected: []string{}, Advice: []string{}}
	var got recorder
	drift := gateway.Observer{Drift: func(_ context.Context, d gateway.Drift) {
		i.Unexpected = append(i.Unexpected, fmt.Sprintf("%s: %s", d.Pointer, d.Kind))
	}}
	client, err := newClient(gateway.WithMiddleware(got.record), gateway.WithObserver(drift), gateway.WithInvoiceFormat(form))
	if err != nil {
		return i, err
	}
	var response gateway.Response
	_, err = client.CreateInvoice(ctx, r, gateway.WithResponse(&response))
	i.Outcome, i.Status, i.Message, i.Result = gateway.OutcomeOf(err), response.StatusCode, response.Message, response.Result
	i.readError(err)
	i.decode(newClient, &got)
	i.advise(form)
	return i, err
}

// readError completes the report of a call that failed, and says why its outcome is so.
func (i *Invoice) readError(err error) {
	var body []byte
	cause := err
	switch e := err.(type) {
	case nil:
		i.Proof = "a result with the message of a success proves the invoice"
		if i.Message != "Operation was successful." {
			i.Proof = "status 201 and a result that is surely an invoice prove it, although the message is not the documented one"
		}
		return
	case *gateway.APIError:
		i.Message, body = e.Message, e.Body
	case *gateway.OutcomeUnknownError:
		cause, body = e.Cause, e.Body
		if e.Response != nil {
			i.Message = e.Response.Message
		}
	}
	if i.Result == nil && json.Valid(body) {
		i.Result = body
	}
	i.Proof = strings.TrimPrefix(cause.Error(), "gateway: ")
	switch i.Outcome {
	case gateway.OutcomeRejected:
		i.Proof = "this response proves that there is no invoice: " + i.Proof
	case gateway.OutcomeUnknown:
		i.Proof = "nothing proves an invoice, and nothing proves that there is none: " + i.Proof
	}
}

// decode finds out what a decoder can read in the result, and whether the client believes it.
func (i *Invoice) decode(newClient newClient, got *recorder) {
	if i.Status < 200 || i.Status > 299 {
		return
	}
	reads := newDecoder(i.Result, i.Request.OrderID)
	if reads == nil {
		return
	}
	i.Decoder = reads.code()
	i.Decoded = gateway.OutcomeOf(got.replay(newClient, i.Request, func(json.RawMessage) (gateway.InvoiceDetails, error) {
		return reads.details(), nil
	})).String()
}

// advise says what to do next.
func (i *Invoice) advise(form gateway.InvoiceFormat) {
	add := func(format string, args ...any) { i.Advice = append(i.Advice, fmt.Sprintf(format, args...)) }
	isCreated := i.Outcome == gateway.OutcomeSucceeded
	if isCreated && form != (gateway.InvoiceFormat{}) {
		add("Set the form: gateway.WithInvoiceFormat(%s).", codeOf(form))
	}
	switch {
	case i.Outcome == gateway.OutcomeRejected:
		i.adviseRefused(form, add)
	case i.Outcome == gateway.OutcomeNotSent:
	case i.Decoded == gateway.OutcomeSucceeded.String() && isCreated:
		add("Give readInvoice to gateway.WithInvoiceDecoder, to show a buyer where to pay.")
	case i.Decoded == gateway.OutcomeSucceeded.String():
		add("Give readInvoice to gateway.WithInvoiceDecoder: the client then proves this invoice.")
	case isCreated:
		add("No member looks like an id, an address or a link: ask the operator which one says where to pay.")
	default:
		add("An invoice may exist: look the order up at the gateway before you run this again.")
	}
}

// adviseRefused says how to go on after a refusal that proves that there is no invoice.
func (i *Invoice) adviseRefused(form gateway.InvoiceFormat, add func(format string, args ...any)) {
	said := plain(strings.ReplaceAll(i.Message+string(i.Result), " ", ""))
	isAboutKey := i.Status == http.StatusUnauthorized || i.Status == http.StatusForbidden || strings.Contains(said, "apikey")
	isAboutForm := isAboutKey || i.Status == http.StatusBadRequest || i.Status == http.StatusUnprocessableEntity
	switch {
	case !isAboutForm:
		add("The form of the request is not the cause.")
	case isAboutKey && !form.LowerCaseKeyName, form.Numbers && !form.LowerCaseKeyName:
		add("Check the key, then try the other spelling of its name: --lower-case-key.")
	case !form.Numbers:
		add("Try amounts as numbers: --numbers.")
	default:
		add("Both forms are refused: ask the operator.")
	}
}

// A recorder keeps the response of one exchange.
type recorder struct {
	next http.RoundTripper
	resp *http.Response
	body bytes.Buffer
}

// record is for [gateway.WithMiddleware].
func (r *recorder) record(next http.RoundTripper) http.RoundTripper {
	r.next = next
	return r
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		r.resp = resp
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(resp.Body, &r.body), resp.Body}
	}
	return resp, err
}

// replay returns the error of a client that gets the recorded response again, and reads it by a decoder. Nothing is sent.
func (r *recorder) replay(newClient newClient, request gateway.InvoiceRequest, decode func(json.RawMessage) (gateway.InvoiceDetails, error)) error {
	client, err := newClient(gateway.WithHTTPClient(&http.Client{Transport: again{r}}), gateway.WithInvoiceDecoder(decode))
	if err != nil {
		return err
	}
	_, err = client.CreateInvoice(context.Background(), request)
	return err
}

// again answers every request with the recorded response.
type again struct{ *recorder }

func (a again) RoundTrip(req *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, req.Body)
	resp := *a.resp
	resp.Body, resp.Request = io.NopCloser(bytes.NewReader(a.body.Bytes())), req
	return &resp, err
}
