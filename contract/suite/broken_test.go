package suite_test

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/contract/suite"
	"github.com/cryptogw/gateway/gatewaytest"
)

// A twist stands between the suite and a good gateway, and makes a bad one of it.
type twist struct {
	next     http.RoundTripper
	request  func(*http.Request)
	response func(*http.Response, string) string // takes the body and returns another
}

func (w twist) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.request != nil {
		r = r.Clone(r.Context())
		w.request(r)
	}
	resp, err := w.next.RoundTrip(r)
	if err != nil || w.response == nil {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	changed := w.response(resp, string(body))
	resp.Body = io.NopCloser(strings.NewReader(changed))
	resp.ContentLength = int64(len(changed))
	resp.Header.Set("Content-Length", strconv.Itoa(len(changed)))
	return resp, nil
}

const (
	envelope   = "the listing is in the envelope of a success"
	records    = "every record of the listing has all its fields"
	ids        = "networkId and coinId are the identifiers of the records in the pair"
	once       = "the listing has one element per coin-network pair"
	rated      = "the exchange rates are answered, of every coin in use"
	byID       = "a pair is found by its identifier from the listing"
	bySymbol   = "a pair is found by the coin's symbol and the network's name"
	alone      = "a coin is found by its symbol alone, for the network's name is not required"
	unlisted   = "whoever asks for what is not listed gets an answer or the envelope of an error"
	anyBalance = "the balance takes the key in a header, of which the name has no case"
	own        = "the client's balance is answered"
	narrow     = "a balance is narrowed by coin, by network and by both"
	noKey      = "a balance without the key header is refused"
	noKeyToo   = "a withdrawal inquiry without the key header is refused"
	anyInquiry = "a withdrawal inquiry takes the key in a header, of which the name has no case"
	asked      = "a withdrawal inquiry answers 201 with all its fields"
	sample     = "an invoice is created as the sample spells it: apiKey, and decimals in strings"
	table      = "an invoice is created as the table spells it: apikey, and numbers"
	short      = "an invoice needs no currency, coin or network"
	lacking    = "an invoice without a required field is refused"
)

// A spoiler makes a bad gateway of a good one.
type spoiler func(*gatewaytest.Server, *suite.Target)

// asking changes what the gateway is asked.
func asking(change func(*http.Request)) spoiler {
	return func(_ *gatewaytest.Server, t *suite.Target) { t.Transport = twist{next: t.Transport, request: change} }
}

// answering changes what the gateway answers.
func answering(change func(*http.Response, string) string) spoiler {
	return func(_ *gatewaytest.Server, t *suite.Target) { t.Transport = twist{next: t.Transport, response: change} }
}

// troubled makes trouble for every request of an operation.
func troubled(op gatewaytest.Operation, trouble gatewaytest.Fault) spoiler {
	return func(gw *gatewaytest.Server, _ *suite.Target) { gw.InjectFault(op, -1, trouble) }
}

// A bad gateway is found out, by the cases that are about what it does wrong; and
// there is no case that finds nothing.
func TestCases_find_bad_gateways(t *testing.T) {
	never := map[string]bool{}
	for _, c := range suite.Cases() {
		never[c.Name] = true
	}
	for _, bad := range badGateways() {
		t.Run(bad.name, func(t *testing.T) {
			gw, target := standIn(t)
			bad.spoil(gw, &target)
			var caught []string
			for _, c := range suite.Cases() {
				if c.Check(t.Context(), target) != nil {
					caught = append(caught, c.Name)
				}
			}
			assert.Subset(t, caught, bad.caughtBy)
		})
		for _, name := range bad.caughtBy {
			delete(never, name)
		}
	}
	assert.Empty(t, never, "cases that nothing bad is known to fail")
}

// A gateway that answers what is not shown in its own way does nothing wrong,
// unless the client has to understand it.
func TestTarget_Readable(t *testing.T) {
	for _, body := range []string{"null", `"moved"`, `{"message":"Operation was successful.","result":null,"meta":{}}`, "[]"} {
		t.Run(body, func(t *testing.T) {
			_, target := standIn(t)
			target.Transport = twist{next: target.Transport, response: func(r *http.Response, shown string) string {
				path := r.Request.URL.Path
				if r.StatusCode > 299 || strings.HasSuffix(path, "/networks-coins") || strings.Contains(path, "/withdrawal/") {
					return shown // it is shown
				}
				return body
			}}
			target.Readable = false
			suite.Run(t, target)
			target.Readable = true
			for _, c := range suite.Cases() {
				if slices.Contains([]string{rated, byID, bySymbol, alone, own, sample, table, short}, c.Name) {
					assert.Error(t, c.Check(t.Context(), target), c.Name)
				}
			}
		})
	}
}
