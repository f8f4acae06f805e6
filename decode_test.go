package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// canned is a transport that returns every request the same response, without a
// network.
type canned struct {
	status int
	header http.Header
	body   func() io.Reader
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	header := c.header
	if header == nil {
		header = http.Header{"Content-Type": {"application/json"}}
	}
	return &http.Response{
		StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header.Clone(), Body: io.NopCloser(c.body()), ContentLength: -1, Request: r,
	}, nil
}

// cannedClient is a client without a network and without an order guard, that gets
// one response.
func cannedClient(t testing.TB, status int, body string, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	transport := canned{status: status, body: func() io.Reader { return strings.NewReader(body) }}
	opts = append([]gateway.Option{
		gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithOrderGuard(nil), once(),
	}, opts...)
	return newClient(t, "https://gateway.example"+prefix, opts...)
}

// decodeErrorOf returns the DecodeError that err is, or for a write the one
// that is the cause of its unknown outcome.
func decodeErrorOf(t testing.TB, s subject, err error) *gateway.DecodeError {
	t.Helper()
	if s.write {
		var unknown *gateway.OutcomeUnknownError
		require.ErrorAs(t, err, &unknown)
		err = unknown.Cause
	}
	var wrong *gateway.DecodeError
	require.ErrorAs(t, err, &wrong)
	return wrong
}

// assertNotUnderstood asserts that a method cannot decode a response, reports the
// place, and keeps the beginning of what it got.
func assertNotUnderstood(t testing.TB, s subject, body, pointer, reason string) {
	t.Helper()
	result, err := s.call(t.Context(), cannedClient(t, s.status, body))
	assertInvariants(t, result, err)
	require.Error(t, err)
	wrong := decodeErrorOf(t, s, err)
	assert.Equal(t, s.op, wrong.Operation)
	assert.Equal(t, s.status, wrong.StatusCode)
	assert.Equal(t, "application/json", wrong.ContentType)
	assert.Equal(t, pointer, wrong.Pointer)
	assert.ErrorContains(t, wrong.Err, reason)
	kept := strings.TrimPrefix(body, "\ufeff")
	assert.Equal(t, kept[:min(len(kept), 8<<10)], string(wrong.Body), "the first 8 KiB are kept")
	assert.LessOrEqual(t, len(err.Error()), 4<<10, "the text is bounded")
	assert.False(t, gateway.SafeToRetry(err))
	assert.Equal(t, outcomeWithoutProof(s), gateway.OutcomeOf(err))
}

// outcomeWithoutProof is the outcome of an error that proves nothing: a read sends no
// invoice.
func outcomeWithoutProof(s subject) gateway.Outcome {
	if s.write {
		return gateway.OutcomeUnknown
	}
	return gateway.OutcomeNotSent
}

// forEach runs a test for every method.
func forEach(t *testing.T, name string, test func(t *testing.T, s subject)) {
	t.Helper()
	for _, s := range subjects() {
		t.Run(name+", "+s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// subjectNamed is one of the methods.
func subjectNamed(name string) subject {
	for _, s := range subjects() {
		if s.name == name {
			return s
		}
	}
	panic("no method " + name)
}

// A response that is cut anywhere is never a success, whatever was read of it.
func TestDecode_truncated(t *testing.T) {
	t.Parallel()
	forEach(t, "row R4: cut at every byte", func(t *testing.T, s subject) {
		body := s.body()
		for n := range len(body) {
			result, err := s.call(t.Context(), cannedClient(t, s.status, body[:n]))
			require.Error(t, err, "cut after %d bytes", n)
			require.True(t, isZero(result), "cut after %d bytes", n)
			wrong := decodeErrorOf(t, s, err)
			require.Equal(t, body[:n], string(wrong.Body))
		}
		_, err := s.call(t.Context(), cannedClient(t, s.status, body))
		require.NoError(t, err)
	})
}

// The same with a connection whose response has a Content-Length.
func TestDecode_truncatedConnection(t *testing.T) {
	t.Parallel()
	forEach(t, "row R4: a connection cut at some bytes", func(t *testing.T, s subject) {
		body := s.body()
		for n := 0; n < len(body); n += len(body) / 7 {
			w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Length", strconv.Itoa(len(body)))
				rw.WriteHeader(s.status)
				_, _ = io.WriteString(rw, body[:n])
			})
			result, err := s.call(t.Context(), newClient(t, w.URL, once()))
			assertInvariants(t, result, err)
			require.Error(t, err, "cut after %d bytes", n)
		}
	})
}

// A wireField is a member of a record as docs/interface.md lists it.
type wireField struct {
	name string
	kind string // what is accepted in its place: a row of wrongValues
	good string
}

// wrongValues are what a field of a kind does not accept: what tells the kinds from
// each other. That nothing else is accepted is tested in internal/strictjson.
var wrongValues = map[string][]string{
	"identifier": {`null`, `""`, `1`, `"other-than-asked"`},
	"text":       {`null`, `1`, `[]`},
	"nonEmpty":   {`null`, `""`, `1`, `["x"]`},
	"amount":     {`null`, `""`, `"x"`, `true`, `"1e65"`},
	"flag":       {`null`, `"true"`, `1`},
	"integer":    {`null`, `"12"`, `1.5`},
	"record":     {`null`, `"x"`, `[{}]`},
}

// rightValues are what a field of a kind accepts, beside the value of the record.
var rightValues = map[string][]string{
	"text":    {`""`},
	"amount":  {`1e-7`, `"-1.50"`, `0`}, // I-54
	"flag":    {`true`, `false`},
	"integer": {`-1`, `1.0`},
	"time":    {"", `null`, `""`, `"x"`, `1684056103`, `true`, `[{"a":1}]`}, // I-53
}

var (
	networkFields = []wireField{
		{"id", "nonEmpty", `"n-1"`},                          // I-79
		{"name", "text", `"Tron (TRC20)"`},                   // I-80
		{"isActive", "flag", `true`},                         // I-81
		{"created_at", "time", `"2023-05-14T09:21:43.000Z"`}, // I-82
		{"updated_at", "time", `"2023-06-01T00:00:00.000Z"`}, // I-83
	}
	coinFields = []wireField{
		{"id", "nonEmpty", `"c-1"`},                          // I-84
		{"name", "text", `"Tether"`},                         // I-85
		{"symbol", "nonEmpty", `"USDT"`},                     // I-86
		{"precision", "integer", `6`},                        // I-87
		{"minAmount", "amount", `"0.00000100"`},              // I-88
		{"isActive", "flag", `true`},                         // I-89
		{"created_at", "time", `"2023-05-14T09:21:43.000Z"`}, // I-90
		{"updated_at", "time", `"2023-06-01T00:00:00.000Z"`}, // I-91
	}
	pairFields = []wireField{
		{"id", "identifier", `"` + pairID + `"`},              // I-57
		{"withdrawalFee", "amount", `"1.5"`},                  // I-58
		{"swapFee", "amount", `"0.1"`},                        // I-59
		{"minWithdraw", "amount", `"10"`},                     // I-60
		{"maxWithdraw", "amount", `"1000"`},                   // I-61
		{"depositable", "flag", `true`},                       // I-62
		{"withdrawable", "flag", `false`},                     // I-63
		{"confirmation", "integer", `20`},                     // I-64
		{"arrivalTime", "integer", `5`},                       // I-65
		{"expirationTime", "integer", `60`},                   // I-66
		{"networkId", "nonEmpty", `"n-1"`},                    // I-68
		{"coinId", "nonEmpty", `"c-1"`},                       // I-69
		{"created_at", "time", `"2023-05-14T09:21:43.000Z"`},  // I-70
		{"updated_at", "time", `"2023-06-01T00:00:00.000Z"`},  // I-71
		{"network", "record", written(networkFields, "", "")}, // I-72
		{"coin", "record", written(coinFields, "", "")},       // I-73
	}
	withdrawalFields = []wireField{
		{"status", "nonEmpty", `"PENDING"`},                        // I-132
		{"destination", "text", `"TXYZ"`},                          // I-133
		{"amount", "amount", `"25.000001"`},                        // I-134
		{"fee", "amount", `"1.5"`},                                 // I-135
		{"coin", "text", `"USDT"`},                                 // I-136
		{"network", "text", `"Tron (TRC20)"`},                      // I-137
		{"withdrawRequestId", "identifier", `"` + requestID + `"`}, // I-138
	}
)

// written writes a record, with another value for one of its members, or
// without it when the value is empty. No name changes nothing.
func written(fields []wireField, name, value string) string {
	var members []string
	for _, f := range fields {
		if f.name == name {
			f.good = value
		}
		if f.good != "" {
			members = append(members, strconv.Quote(f.name)+":"+f.good)
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// A recordCase is a record inside a response to a method.
type recordCase struct {
	subject string
	place   string // the pointer to the record
	fields  []wireField
	wrap    func(record string) string // the result that holds it
	anyID   bool                       // the method did not ask for an identifier
}

func recordCases() []recordCase {
	same := func(record string) string { return record }
	second := func(record string) string { return "[" + pairJSON + "," + record + "]" }
	inPair := func(name string) func(string) string {
		return func(record string) string { return written(pairFields, name, record) }
	}
	return []recordCase{
		{"CoinNetwork", "/result", pairFields, same, false},
		{"CoinNetwork", "/result/network", networkFields, inPair("network"), false},
		{"CoinNetwork", "/result/coin", coinFields, inPair("coin"), false},
		{"CoinNetwork", "/result/0", pairFields, func(r string) string { return "[" + r + "]" }, false},
		{"CoinNetworkBySymbol", "/result", pairFields, same, true},
		{"CoinNetworksOf", "/result", pairFields, same, true},
		{"CoinNetworksOf", "/result/1", pairFields, second, true},
		{"CoinNetworks", "/result/1", pairFields, second, true},
		{"CoinNetworks", "/result/1/network", networkFields, func(r string) string { return second(inPair("network")(r)) }, true},
		{"CoinNetworks", "/result/1/coin", coinFields, func(r string) string { return second(inPair("coin")(r)) }, true},
		{"Withdrawal", "/result", withdrawalFields, same, false},
		{"Withdrawal", "/result/0", withdrawalFields, func(r string) string { return "[" + r + "]" }, false},
	}
}

// Each field of each record is required and of its kind; only a time is lenient.
// I-52, I-145
func TestDecode_fields(t *testing.T) {
	t.Parallel()
	for _, record := range recordCases() {
		for _, field := range record.fields {
			t.Run(fmt.Sprintf("%s %s/%s", record.subject, record.place, field.name), func(t *testing.T) {
				t.Parallel()
				assertField(t, record, field)
			})
		}
	}
}

func assertField(t *testing.T, record recordCase, field wireField) {
	t.Helper()
	s, pointer := subjectNamed(record.subject), record.place+"/"+field.name
	body := func(value string) string {
		return enveloped(record.wrap(written(record.fields, field.name, value)))
	}
	for _, value := range rightValues[field.kind] {
		result, err := s.call(t.Context(), cannedClient(t, s.status, body(value)))
		require.NoError(t, err, "%s: %s", field.name, value)
		assertInvariants(t, result, err)
	}
	if field.kind == "time" {
		return
	}
	assertNotUnderstood(t, s, body(""), pointer, "is missing")
	for _, value := range wrongValues[field.kind] {
		if value != `"other-than-asked"` || !record.anyID {
			assertNotUnderstood(t, s, body(value), pointer, "")
		}
	}
}

// Every field goes where it belongs, with exactly its value, and none is unknown.
// I-41, I-49, I-57, I-58, I-59, I-60, I-61, I-62, I-63, I-64, I-65, I-66, I-67, I-68, I-69, I-70,
// I-71, I-72, I-73, I-77, I-79, I-80, I-81, I-82, I-83, I-84, I-85, I-86, I-87, I-88, I-89, I-90,
// I-91, I-131, I-132, I-133, I-134, I-135, I-136, I-137, I-138, I-146, I-147
func TestDecode_values(t *testing.T) {
	t.Parallel()
	created, updated := time.Date(2023, 5, 14, 9, 21, 43, 0, time.UTC), time.Date(2023, 6, 1, 0, 0, 0, 0, time.UTC)
	pair := gateway.CoinNetwork{
		ID:            pairID,
		WithdrawalFee: decimal.RequireFromString("1.5"),
		SwapFee:       decimal.RequireFromString("0.000000010000000001"),
		MinWithdraw:   decimal.RequireFromString("10"),
		MaxWithdraw:   decimal.RequireFromString("123456789012345678901234.12345678"),
		Depositable:   true, Withdrawable: false,
		Confirmations: 20, ArrivalTime: 5, ExpirationTime: 60,
		NetworkID: "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33", CoinID: "5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44",
		CreatedAt: created, UpdatedAt: updated,
		Network: gateway.Network{
			ID: "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33", Name: "Tron (TRC20)", IsActive: true,
			CreatedAt: created, UpdatedAt: updated,
		},
		Coin: gateway.Coin{
			ID: "5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44", Name: "Tether", Symbol: "USDT", Precision: 6,
			MinAmount: decimal.RequireFromString("0.00000100"), IsActive: true,
			CreatedAt: created, UpdatedAt: updated,
		},
	}
	withdrawal := &gateway.Withdrawal{
		Status: gateway.WithdrawalPending, Destination: "TXYZ",
		Amount: decimal.RequireFromString("25.000001"), Fee: decimal.RequireFromString("1.5"),
		Coin: "USDT", Network: "Tron (TRC20)", WithdrawRequestID: requestID,
	}
	for name, want := range map[string]any{
		"CoinNetworks":        []gateway.CoinNetwork{pair},
		"CoinNetwork":         &pair,
		"CoinNetworkBySymbol": &pair,
		"CoinNetworksOf":      []gateway.CoinNetwork{pair},
		"Withdrawal":          withdrawal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := subjectNamed(name)
			var w recorder
			got, err := s.call(t.Context(), cannedClient(t, s.status, s.body(), gateway.WithObserver(&w)))
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Empty(t, w.drifts)
		})
	}
}

// No two fields of a record are mixed up: each flag, number and text differs
// from its neighbours in one of two records.
func TestDecode_valuesOfNeighbours(t *testing.T) {
	t.Parallel()
	result := strings.NewReplacer(
		`"depositable":true`, `"depositable":false`, `"withdrawable":false`, `"withdrawable":true`,
		`"updated_at":"2023-06-01T00:00:00.000Z","network"`, `"updated_at":"2024-01-01T00:00:00.000Z","network"`,
		`"Tron (TRC20)","isActive":true`, `"Tron (TRC20)","isActive":false`,
	).Replace(pairJSON)
	got, err := cannedClient(t, 200, enveloped(result)).CoinNetwork(t.Context(), pairID)
	require.NoError(t, err)
	assert.False(t, got.Depositable)
	assert.True(t, got.Withdrawable)
	assert.Equal(t, 2024, got.UpdatedAt.Year())
	assert.Equal(t, 2023, got.Network.UpdatedAt.Year())
	assert.False(t, got.Network.IsActive)
	assert.True(t, got.Coin.IsActive)
}

// Which results each method accepts: a list, a record, or either.
// I-45, I-51
func TestDecode_listing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"CoinNetworks", "CoinNetworksOf"} {
		s := subjectNamed(name)
		t.Run("row R21: one bad element of 500, "+name, func(t *testing.T) {
			t.Parallel()
			bad := written(pairFields, "withdrawalFee", `"abc"`)
			body := enveloped("[" + strings.Repeat(pairJSON+",", 417) + bad + strings.Repeat(","+pairJSON, 82) + "]")
			assertNotUnderstood(t, s, body, "/result/417/withdrawalFee", "is not a decimal number")
		})
		t.Run("a listing of none is empty, not nil, "+name, func(t *testing.T) {
			t.Parallel()
			got, err := s.call(t.Context(), cannedClient(t, 200, enveloped("[]")))
			require.NoError(t, err)
			assert.Equal(t, []gateway.CoinNetwork{}, got)
		})
		t.Run("the order of the response stays, "+name, func(t *testing.T) { // I-47
			t.Parallel()
			body := enveloped("[" + written(pairFields, "id", `"b"`) + "," + written(pairFields, "id", `"a"`) + "]")
			got, err := s.call(t.Context(), cannedClient(t, 200, body))
			require.NoError(t, err)
			pairs := got.([]gateway.CoinNetwork)
			assert.Equal(t, []string{"b", "a"}, []string{pairs[0].ID, pairs[1].ID})
		})
	}
	t.Run("row R7: an object where an array is expected", func(t *testing.T) {
		t.Parallel()
		assertNotUnderstood(t, subjectNamed("CoinNetworks"), enveloped("{}"), "/result", "is an object, not an array")
		assertNotUnderstood(t, subjectNamed("CoinNetworks"), enveloped(pairJSON), "/result", "is an object, not an array")
	})
	t.Run("one record is an array of one by symbol", func(t *testing.T) { // I-51
		t.Parallel()
		got, err := cannedClient(t, 200, enveloped(pairJSON)).CoinNetworksOf(t.Context(), "USDT")
		require.NoError(t, err)
		require.Len(t, got, 1)
		assert.Equal(t, pairID, got[0].ID)
	})
	for _, name := range []string{"CoinNetwork", "CoinNetworkBySymbol", "Withdrawal"} {
		s := subjectNamed(name)
		t.Run("an array of one record is the record, "+name, func(t *testing.T) { // I-50
			t.Parallel()
			got, err := s.call(t.Context(), cannedClient(t, s.status, enveloped("["+s.result+"]")))
			require.NoError(t, err)
			assertInvariants(t, got, err)
		})
		t.Run("an array of two records is not, "+name, func(t *testing.T) { // I-50
			t.Parallel()
			assertNotUnderstood(t, s, enveloped("["+s.result+","+s.result+"]"), "/result/0", "several records")
		})
	}
}

// What depth costs is bounded, though the place of the error is deep. This test is
// not parallel, because it measures.
func TestDecode_depthIsCheap(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)
	for _, s := range subjects() {
		got, most := allocated(t, s, enveloped(deep)), uint64(slack())*(1<<20+64<<10)
		if s.name == "Withdrawal" {
			most *= 2 // its status is looked for again
		}
		assert.Less(t, got, most, "row R19: %s allocates %d bytes", s.name, got)
	}
}

// allocated is how many bytes a call allocates: the least of three times.
func allocated(t *testing.T, s subject, body string) uint64 {
	t.Helper()
	c := cannedClient(t, s.status, body)
	least := ^uint64(0)
	for range 3 {
		least = min(least, bytesAllocated(func() { _, _ = s.call(t.Context(), c) }))
	}
	return least
}

// I-26
func TestDecode_status(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 203, 206, 226, 299} {
		forEach(t, fmt.Sprintf("row R24: status %d", status), func(t *testing.T, s subject) {
			got, err := s.call(t.Context(), cannedClient(t, status, s.body()))
			require.NoError(t, err)
			assertInvariants(t, got, err)
		})
	}
	forEach(t, "row R24: status 204 has no body", func(t *testing.T, s subject) {
		got, err := s.call(t.Context(), cannedClient(t, 204, ""))
		assertInvariants(t, got, err)
		assert.ErrorContains(t, decodeErrorOf(t, s, err), "the body is empty")
	})
}

func TestDecode_contentType(t *testing.T) {
	t.Parallel()
	forEach(t, "row R23: a page that is labelled as one", func(t *testing.T, s subject) {
		w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			rw.WriteHeader(200)
			_, _ = io.WriteString(rw, "<html>captive portal</html>")
		})
		got, err := s.call(t.Context(), newClient(t, w.URL))
		assertInvariants(t, got, err)
		wrong := decodeErrorOf(t, s, err)
		assert.Equal(t, "text/html; charset=utf-8", wrong.ContentType)
		assert.Equal(t, "<html>captive portal</html>", string(wrong.Body))
		assert.ErrorContains(t, err, "captive portal")
		assert.Len(t, w.Requests(), 1, "a retry would not help")
	})
	forEach(t, "JSON is read whatever it is labelled as", func(t *testing.T, s subject) { // I-9
		w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/plain")
			rw.WriteHeader(s.status)
			_, _ = io.WriteString(rw, s.body())
		})
		_, err := s.call(t.Context(), newClient(t, w.URL))
		require.NoError(t, err)
	})
	forEach(t, "row R25: a Retry-After on a success is ignored", func(t *testing.T, s subject) {
		w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "3600")
			rw.WriteHeader(s.status)
			_, _ = io.WriteString(rw, s.body())
		})
		_, err := s.call(t.Context(), newClient(t, w.URL))
		require.NoError(t, err)
		assert.Len(t, w.Requests(), 1)
	})
}

// unending is a response without an end that counts what is taken of it.
type unending struct {
	start, more string
	at, taken   int
}

func (e *unending) Read(p []byte) (int, error) {
	for i := range p {
		if e.at < len(e.start) {
			p[i] = e.start[e.at]
		} else {
			p[i] = e.more[(e.at-len(e.start))%len(e.more)]
		}
		e.at++
	}
	e.taken += len(p)
	return len(p), nil
}

// Of a response over the limit no more is taken than the limit and a byte.
// I-162
func TestDecode_tooLarge(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for _, tt := range []struct{ name, start, more string }{
		{"row R19: a text without an end", `{"message":"`, "x"},
		{"row R19: spaces without an end", "", " "},
		{"row R19: records without an end", `{"result":[` + pairJSON, "," + pairJSON},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			source := &unending{start: tt.start, more: tt.more}
			transport := canned{status: s.status, body: func() io.Reader { return source }}
			got, err := s.call(t.Context(), cannedClient(t, 0, "",
				gateway.WithHTTPClient(&http.Client{Transport: transport}), gateway.WithMaxResponseBytes(limit)))
			assertInvariants(t, got, err)
			assert.LessOrEqual(t, source.taken, limit+1)
			assertTooLarge(t, s, err)
		})
	}
}

func assertTooLarge(t *testing.T, s subject, err error) {
	t.Helper()
	var unknown *gateway.OutcomeUnknownError
	if s.write {
		require.ErrorAs(t, err, &unknown)
		err = unknown.Cause
	}
	var wrong *gateway.DecodeError
	if errors.As(err, &wrong) {
		// A reader that knows already that the response is wrong stops there.
		assert.NotEmpty(t, wrong.Body)
		return
	}
	var failure *gateway.TransportError
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, gateway.PhaseRead, failure.Phase)
	assert.ErrorIs(t, err, gateway.ErrResponseTooLarge)
	assert.False(t, gateway.SafeToRetry(err))
}

// The limit is exact: a response of as many bytes is read.
// I-162
func TestDecode_limit(t *testing.T) {
	t.Parallel()
	forEach(t, "row R19: the limit is exact", func(t *testing.T, s subject) {
		body := s.body()
		_, err := s.call(t.Context(), cannedClient(t, s.status, body, gateway.WithMaxResponseBytes(int64(len(body)))))
		require.NoError(t, err)
		_, err = s.call(t.Context(), cannedClient(t, s.status, body, gateway.WithMaxResponseBytes(int64(len(body)-1))))
		require.Error(t, err)
		assertTooLarge(t, s, err)
	})
	forEach(t, "row R2: a byte-order mark is over no limit, however small", func(t *testing.T, s subject) {
		for limit := int64(1); limit <= 4; limit++ {
			_, err := s.call(t.Context(), cannedClient(t, s.status, "\ufeff"+s.body(), gateway.WithMaxResponseBytes(limit)))
			require.Error(t, err)
			assertTooLarge(t, s, err)
		}
	})
}

// I-38, I-43
func TestDecode_notAnEnvelope(t *testing.T) {
	t.Parallel()
	const success = `"message":"Operation was successful."`
	for _, tt := range []struct{ name, body, pointer, reason string }{
		{"row R1: no body", "", "", "the body is empty"},
		{"row R1: a byte-order mark and spaces", "\ufeff \r\n\t ", "", "the body is empty"},
		{"row R1: null", "null", "", "is null, not an object"},
		{"row R1: an array of an envelope", `[{"result":[]}]`, "", "is an array, not an object"},
		{"row R3: an empty object", "{}", "/result", "is missing"},
		{"row R3: an envelope without a result", "{" + success + `,"meta":{}}`, "/result", "is missing"},
		{"row R3: a result by another name", "{" + success + `,"Result":[],"data":[]}`, "/result", "is missing"},
		{"row R23: a page", "<!DOCTYPE html><html><body>Just a moment…</body></html>", "", "invalid character"},
		{"a second byte-order mark", "\ufeff\ufeff{}", "", "invalid character"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			assertNotUnderstood(t, s, tt.body, tt.pointer, tt.reason)
		})
	}
}

// Whatever is around a good result must be whole and well formed, each member of the
// envelope and those that it does not have.
// I-8
func TestDecode_brokenEnvelope(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for _, tt := range []struct{ name, before, after, pointer, reason string }{
		{"row R3: a brace at the end", "", "}}", "", "there is more after the end"},
		{"row R3: a second document", "", "}\n{}", "", "there is more after the end"},
		{"row R5: a result twice", "", `,"result":[]}`, "/result", "duplicate"},
		{"row R5: a result twice, first as null", `"result":null,`, "}", "/result", ""},
		{"row R5: a result twice, once in escapes", "", `,"\u0072esult":[]}`, "/result", "duplicate"},
		{"row R5: a message twice", "", `,"message":"a","message":"b"}`, "/message", "duplicate"},
		{"row R5: an unknown name twice", "", `,"x":1,"x":2}`, "/x", "duplicate"},
		{"row R5: a name twice in meta", "", `,"meta":{"a":{"b":1,"b":2}}}`, "/meta/a/b", "duplicate"},
		{"row R5: a name twice in an unknown member", "", `,"x":[{"b":1,"b":2}]}`, "/x/0/b", "duplicate"},
		{"row R19: meta of depth 10,001", "", `,"meta":` + deep + "}", "/meta", "depth"},
		{"row R19: an unknown member of depth 10,001", "", `,"x":` + deep + "}", "/x", "depth"},
		{"row R19: a message of depth 10,001", `"message":` + deep + ",", "}", "/message", "depth"},
		{"row R20: a broken byte in the message", "\"message\":\"a\xff\",", "}", "/message", "UTF-8"},
		{"row R20: a lone surrogate in the message", `"message":"a\ud800",`, "}", "/message", "surrogate"},
		{"row R20: a broken byte in meta", "", ",\"meta\":{\"a\":\"\xff\"}}", "/meta/a", "UTF-8"},
		{"row R20: a broken byte in a name", "", ",\"\xff\":1}", "", "UTF-8"},
		{"row R20: a broken byte in an unknown member", "", ",\"x\":\"\xff\"}", "/x", "UTF-8"},
		{"a comma at the end", "", ",}", "", "invalid character"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			assertBroken(t, s, "{"+tt.before+`"result":`+s.result+tt.after, tt.pointer, tt.reason)
		})
	}
}

// assertBroken is assertNotUnderstood for an error of syntax, whose place is that of
// the parser: at pointer or below it.
func assertBroken(t testing.TB, s subject, body, pointer, reason string) {
	t.Helper()
	result, err := s.call(t.Context(), cannedClient(t, s.status, body))
	assertInvariants(t, result, err)
	require.Error(t, err)
	wrong := decodeErrorOf(t, s, err)
	assert.True(t, strings.HasPrefix(wrong.Pointer, pointer), "%.100s is not below %s", wrong.Pointer, pointer)
	assert.ErrorContains(t, wrong.Err, reason)
	assert.LessOrEqual(t, len(err.Error()), 4<<10, "the text is bounded")
	assert.Equal(t, strings.ToValidUTF8(body[:min(len(body), 8<<10)], "?"), strings.ToValidUTF8(string(wrong.Body), "?"))
	assert.Equal(t, outcomeWithoutProof(s), gateway.OutcomeOf(err))
}

// Nothing in the result itself may be malformed either, whatever its shape.
// I-8
func TestDecode_brokenResult(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, result string }{
		{"row R3: null", "null"},
		{"row R19: a depth of 1,000,000 arrays", strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)},
		{"row R19: a depth of 1,000,000 objects", strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_000)},
		{"row R20: a broken byte", "\"\xff\""},
		{"row R20: a broken byte in a member", "{\"a\":\"\xff\"}"},
		{"row R5: a name twice", `{"a":1,"a":1}`},
		{"row R5: a name twice in a record", `[{"a":1,"a":1}]`},
		{"nothing", ""},
		{"a word", "undefined"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			assertBroken(t, s, enveloped(tt.result), "/result", "")
		})
	}
}

// What the envelope may be.
// I-44
func TestDecode_lenientEnvelope(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, before, after, message, meta string }{
		{"row R2: a byte-order mark", "\ufeff{", "}", "", ""},
		{"row R2: a byte-order mark and spaces", "\ufeff\r\n {", "}\r\n ", "", ""},
		{"row R6: unknown members", `{"x":1,"y":{"z":[null]},`, `,"w":null}`, "", ""}, // I-6
		{"row R6: members that differ in case", `{"MESSAGE":1,"Result":null,`, `,"META":[]}`, "", ""},
		{"row R8: meta is an array", `{"meta":[],`, "}", "", "[]"},
		{"row R8: meta is null", `{"meta":null,`, "}", "", "null"},
		{"row R8: meta is missing", `{"message":"Operation was successful.",`, "}", "Operation was successful.", ""},
		{"row R8: meta is empty", `{"meta":{},`, "}", "", "{}"}, // I-42
		{"row R8: meta is full", `{"meta":{"page":1,"more": {"a":[]}},`, "}", "", `{"page":1,"more": {"a":[]}}`},
		{"row R8: meta has 64 KiB", `{"meta":"` + strings.Repeat("x", 64<<10-2) + `",`, "}", "", `"` + strings.Repeat("x", 64<<10-2) + `"`},
		{"row R8: meta has more", `{"meta":"` + strings.Repeat("x", 64<<10-1) + `",`, "}", "", ""},
		{"row R8: the message is a number", `{"message":1,`, "}", "", ""},
		{"row R8: the message is an object", `{"message":{"en":"x"},`, "}", "", ""},
		{"row R8: the message is null", `{"message":null,`, "}", "", ""},
		// I-39
		{"row R8: the message has 1 KiB", `{"message":"` + strings.Repeat("x", 1<<10) + `",`, "}", strings.Repeat("x", 1<<10), ""},
		{"row R8: the message has 1 MB", `{"message":"` + strings.Repeat("é", 1<<19) + `",`, "}", strings.Repeat("é", 1<<9), ""},
		{"row R8: the message is truncated between characters", `{"message":"x` + strings.Repeat("é", 1<<10) + `",`, "}", "x" + strings.Repeat("é", 1<<9-1), ""},
		{"the message comes last", "{", `,"message":"a\u0062c"}`, "abc", ""},
		{"names in escapes", `{"\u006dessage":"x","\u006deta":{"a":1},`, "}", "x", `{"a":1}`},
		{"spaces everywhere", "\t{\r\n", "\n}\n", "", ""},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			body := tt.before + `"result" : ` + s.result + tt.after
			var response gateway.Response
			result, err := s.call(t.Context(), cannedClient(t, s.status, body), gateway.WithResponse(&response))
			require.NoError(t, err)
			assertInvariants(t, result, err)
			assert.Equal(t, tt.message, response.Message)
			assert.Equal(t, tt.meta, string(response.Meta))
			assert.Equal(t, s.result, string(response.Result))
		})
	}
}

// A result of which not all is there is nothing.
func TestDecode_resultOfAnError(t *testing.T) {
	t.Parallel()
	const kept = 8 << 10
	padded := func(before, result int) string {
		return `{"x":"` + strings.Repeat("x", before-len(`{"x":"","result":`)) + `","result":"` + strings.Repeat("r", result-2) + `"}`
	}
	for _, tt := range []struct{ name, body, want string }{
		{"a result", `{"result": [1] }`, "[1]"},
		{"spaces around it", "{\"result\" :\r\n\t{\"a\": 1} , \"x\":1}", `{"a": 1}`},
		{"a number to the last byte", `{"result":12}`, "12"},
		{"an envelope that is cut after it", `{"result":[1]`, "[1]"},
		{"a result that is cut", `{"result":[1,`, ""},
		{"a result that is broken", `{"result":[1,}],"meta":{}}`, ""},
		{"a result without a byte", `{"result":`, ""},
		{"a result without a value", `{"result":}`, ""},
		{"no result", `{"message":"m"}`, ""},
		{"a page", `<html>"result":[1]`, ""},
		{"beyond what is kept", padded(kept+1<<10, 8), ""},
		{"partly beyond what is kept", padded(kept-8, 2<<10), ""},
		{"within what is kept", padded(kept-16, 8), `"rrrrrr"`},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			var response gateway.Response
			_, err := s.call(t.Context(), cannedClient(t, 404, tt.body), gateway.WithResponse(&response))
			var refusal *gateway.APIError
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, tt.want, string(response.Result))
			if tt.want == "" {
				assert.Nil(t, response.Result)
			}
		})
	}
}

// The message is truncated after the key is removed, so that no part of it is left.
func TestDecode_keyInEnvelope(t *testing.T) {
	t.Parallel()
	for before := 1<<10 - len(canary) - 2; before <= 1<<10+2; before++ {
		message := strings.Repeat("x", before) + canary + "y"
		var response gateway.Response
		_, err := cannedClient(t, 404, `{"message":"`+message+`","result":[],"meta":{"`+canary+`":"`+canary+`"}}`).
			Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithResponse(&response))
		var refusal *gateway.APIError
		require.ErrorAs(t, err, &refusal)
		for _, text := range []string{refusal.Message, response.Message} {
			require.LessOrEqual(t, len(text), 1<<10)
			require.True(t, utf8.ValidString(text))
			require.NotContains(t, text, canary[:2], "%d bytes before the key", before)
		}
		assert.JSONEq(t, `{"[REDACTED]":"[REDACTED]"}`, string(response.Meta))
		assertNoKey(t, err)
	}
}

// To find the key in a message or meta costs no more, however large these are. This test
// is not parallel, because it measures.
func TestDecode_costOfEnvelope(t *testing.T) {
	encoded := strings.Repeat("%"+canary[:len(canary)-1], 2<<20/len(canary))
	for name, envelope := range map[string]string{
		"a message": `{"message":"` + encoded + canary + `","result":[],"meta":{}}`,
		"a meta":    `{"message":"no","result":[],"meta":["` + encoded + canary + `"]}`,
	} {
		c := cannedClient(t, 200, envelope)
		var err error
		cost := bytesAllocated(func() { _, err = c.Withdrawal(t.Context(), requestID) })
		assertInvariants(t, nil, err)
		assert.Less(t, cost, uint64(8*len(envelope)), "%s: %.100v", name, err)
	}
}

// An error envelope that comes with a 2xx is an APIError.
// I-154, I-155, I-157
func TestDecode_refusedWithSuccess(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"CoinNetwork", "CoinNetworkBySymbol", "Withdrawal"} {
		s := subjectNamed(name)
		t.Run("an empty array where a record is expected, whatever the message, "+name, func(t *testing.T) {
			t.Parallel()
			got, err := s.call(t.Context(), cannedClient(t, s.status, enveloped("[]")))
			assertRefusedWithSuccess(t, s, got, err, "Operation was successful.")
		})
	}
	forEach(t, "an empty array with another message", func(t *testing.T, s subject) {
		got, err := s.call(t.Context(), cannedClient(t, s.status, refused("Coin is not supported")))
		if s.write {
			var unknown *gateway.OutcomeUnknownError
			require.ErrorAs(t, err, &unknown)
			assert.Equal(t, s.status, unknown.StatusCode)
			err = unknown.Cause
		}
		assertRefusedWithSuccess(t, s, got, err, "Coin is not supported")
	})
	t.Run("a meta that is larger than what is kept of a body is whole", func(t *testing.T) {
		t.Parallel()
		meta := `{"why":"` + strings.Repeat("x", 9<<10) + `"}`
		got, err := cannedClient(t, 200, `{"message":"no","result":[],"meta":`+meta+`}`).Withdrawal(t.Context(), requestID)
		assertInvariants(t, got, err)
		var refusal *gateway.APIError
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, meta, string(refusal.Meta))
	})
	t.Run("the documented text for a missing key is one with a 2xx too", func(t *testing.T) { // I-36
		t.Parallel()
		got, err := cannedClient(t, 200, refused("x-api-key header is required")).Balance(t.Context(), gateway.BalanceQuery{})
		assertInvariants(t, got, err)
		assert.ErrorIs(t, err, gateway.ErrMissingAPIKey)
	})
}

func assertRefusedWithSuccess(t *testing.T, s subject, got any, err error, message string) {
	t.Helper()
	assertInvariants(t, got, err)
	var refusal *gateway.APIError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, s.op, refusal.Operation)
	assert.Equal(t, s.status, refusal.StatusCode)
	assert.Equal(t, message, refusal.Message)
	assert.Equal(t, "{}", string(refusal.Meta))
	assert.NotEmpty(t, refusal.Body)
}
