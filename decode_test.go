package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// canned is a transport that answers every request alike, without a network.
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

// cannedClient is a client without a network and without an order guard, that
// gets one answer.
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

// assertNotUnderstood asserts that a method does not understand an answer, says
// where it stopped, and keeps the beginning of what it got.
func assertNotUnderstood(t testing.TB, s subject, body, pointer, reason string) {
	t.Helper()
	result, err := s.call(t.Context(), cannedClient(t, s.status, body))
	assertInvariants(t, result, err)
	require.Error(t, err)
	wrong := decodeErrorOf(t, s, err)
	assert.Equal(t, s.op, wrong.Op)
	assert.Equal(t, s.status, wrong.StatusCode)
	assert.Equal(t, "application/json", wrong.ContentType)
	assert.Equal(t, pointer, wrong.Pointer)
	assert.ErrorContains(t, wrong.Err, reason)
	kept := strings.TrimPrefix(body, "\ufeff")
	assert.Equal(t, kept[:min(len(kept), 8<<10)], string(wrong.Body), "the first 8 KiB are kept")
	assert.LessOrEqual(t, len(err.Error()), 4<<10, "the text is bounded")
	assert.False(t, gateway.SafeToRetry(err))
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

func TestDecode_notAnEnvelope(t *testing.T) {
	t.Parallel()
	const success = `"message":"Operation was successful."`
	for _, tt := range []struct{ name, body, pointer, reason string }{
		{"row 52: no body", "", "", "the body is empty"},
		{"row 52: spaces and nothing else", " \r\n\t ", "", "the body is empty"},
		{"row 52: a byte-order mark and nothing else", "\ufeff", "", "the body is empty"},
		{"row 53: null", "null", "", "is null, not an object"},
		{"row 53: true", "true", "", "is a boolean, not an object"},
		{"row 53: a text", `"x"`, "", "is text, not an object"},
		{"row 53: a number", "1", "", "is a number, not an object"},
		{"row 53: an empty array", "[]", "", "is an array, not an object"},
		{"row 53: an array of an envelope", `[{"result":[]}]`, "", "is an array, not an object"},
		{"row 55: an empty object", "{}", "/result", "is missing"},
		{"row 55: an envelope without a result", "{" + success + `,"meta":{}}`, "/result", "is missing"},
		{"row 55: a result by another name", "{" + success + `,"Result":[],"data":[]}`, "/result", "is missing"},
		{"row 83: a page", "<!DOCTYPE html><html><body>Just a moment…</body></html>", "", "invalid character"},
		{"row 83: plain words", "OK", "", "invalid character"},
		{"a second byte-order mark", "\ufeff\ufeff{}", "", "invalid character"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "", "invalid"},
		{"single quotes", `{'result':[]}`, "", "invalid character"},
		{"a comment", `/* x */{"result":[]}`, "", "invalid character"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			assertNotUnderstood(t, s, tt.body, tt.pointer, tt.reason)
		})
	}
}

// Whatever stands around a good result must be whole and well formed.
func TestDecode_brokenEnvelope(t *testing.T) {
	t.Parallel()
	deep := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for _, tt := range []struct{ name, before, after, pointer, reason string }{
		{"row 56: a letter at the end", "", "}x", "", "there is more after the end"},
		{"row 56: a brace at the end", "", "}}", "", "there is more after the end"},
		{"row 56: a second document", "", "}{}", "", "there is more after the end"},
		{"row 56: a second document on a line of its own", "", "}\n{}", "", "there is more after the end"},
		{"row 56: a NUL at the end", "", "}\x00", "", "there is more after the end"},
		{"row 56: a page after the document", "", "}<!-- served by x -->", "", "there is more after the end"},
		{"row 58: a result twice", "", `,"result":[]}`, "/result", "duplicate"},
		{"row 58: a result twice, first as null", `"result":null,`, "}", "", ""},
		{"row 58: a result twice, once in escapes", "", `,"\u0072esult":[]}`, "/result", "duplicate"},
		{"row 58: a message twice", "", `,"message":"a","message":"b"}`, "/message", "duplicate"},
		{"row 58: an unknown name twice", "", `,"x":1,"x":2}`, "/x", "duplicate"},
		{"row 58: a name twice in meta", "", `,"meta":{"a":{"b":1,"b":2}}}`, "/meta/a/b", "duplicate"},
		{"row 58: a name twice in an unknown member", "", `,"x":[{"b":1,"b":2}]}`, "/x/0/b", "duplicate"},
		{"row 78: meta of depth 10,001", "", `,"meta":` + deep(10_000) + "}", "/meta", "depth"},
		{"row 78: meta of depth 1,000,000", "", `,"meta":` + deep(1_000_000) + "}", "/meta", "depth"},
		{"row 78: an unknown member of depth 1,000,000", "", `,"x":` + deep(1_000_000) + "}", "/x", "depth"},
		{"row 78: a message of depth 1,000,000", `"message":` + deep(1_000_000) + ",", "}", "/message", "depth"},
		{"row 80: a broken byte in the message", "\"message\":\"a\xff\",", "}", "/message", "UTF-8"},
		{"row 80: half a character in the message", "\"message\":\"a\xe4\xb8\",", "}", "/message", "UTF-8"},
		{"row 80: a lone surrogate in the message", `"message":"a\ud800",`, "}", "/message", "surrogate"},
		{"row 80: two halves of a pair the wrong way round", `"message":"\udc00\ud800",`, "}", "/message", "surrogate"},
		{"row 80: a broken byte in meta", "", ",\"meta\":{\"a\":\"\xff\"}}", "/meta/a", "UTF-8"},
		{"row 80: a broken byte in a name", "", ",\"\xff\":1}", "", "UTF-8"},
		{"row 80: a lone surrogate in a name", "", `,"\ud800":1}`, "", "surrogate"},
		{"row 80: a broken byte in an unknown member", "", ",\"x\":\"\xff\"}", "/x", "UTF-8"},
		{"a comma at the end", "", ",}", "", "invalid character"},
		{"no comma", "", ` "meta":{}}`, "", "invalid character"},
		{"a control character in a text", "\"message\":\"a\nb\",", "}", "/message", "invalid character"},
		{"a number with a leading zero", "", `,"x":01}`, "", "invalid character"},
		{"NaN", "", `,"x":NaN}`, "/x", "invalid character"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			body := "{" + tt.before + `"result":` + s.result + tt.after
			if tt.reason != "" {
				assertBroken(t, s, body, tt.pointer, tt.reason)
				return
			}
			result, err := s.call(t.Context(), cannedClient(t, s.status, body))
			assertInvariants(t, result, err)
			_ = decodeErrorOf(t, s, err)
		})
	}
}

// assertBroken is assertNotUnderstood for a fault of syntax, whose place is
// known as far as the parser says it: at pointer, above it or below it.
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
}

// Nothing in the result itself may be malformed either.
func TestDecode_brokenResult(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_000)
	for _, tt := range []struct{ name, result string }{
		{"row 60: null", "null"},
		{"row 78: a depth of 1,000,000 arrays", strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)},
		{"row 78: a depth of 10,001 arrays", strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)},
		{"row 78: a depth of 1,000,000 objects", nested},
		{"row 80: a broken byte", "\"\xff\""},
		{"row 80: a broken byte in a member", "{\"a\":\"\xff\"}"},
		{"row 80: a lone surrogate", `"\ud800"`},
		{"row 58: a name twice", `{"a":1,"a":1}`},
		{"row 58: a name twice in a record", `[{"a":1,"a":1}]`},
		{"nothing", ""},
		{"a word", "undefined"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			result, err := s.call(t.Context(), cannedClient(t, s.status, enveloped(tt.result)))
			assertInvariants(t, result, err)
			require.Error(t, err)
			wrong := decodeErrorOf(t, s, err)
			assert.NotEmpty(t, wrong.Body)
			assert.LessOrEqual(t, len(wrong.Body), 8<<10)
			assert.LessOrEqual(t, len(err.Error()), 4<<10, "the text is bounded")
		})
	}
}

// What the envelope may be.
func TestDecode_lenientEnvelope(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, before, after string }{
		{"row 54: a byte-order mark", "\ufeff{", "}"},
		{"row 54: a byte-order mark and spaces", "\ufeff\r\n {", "}\r\n "},
		{"row 59: unknown members", `{"x":1,"y":{"z":[null]},`, `,"w":null}`},
		{"row 59: members that differ in case", `{"MESSAGE":1,"Result":null,`, `,"META":[]}`},
		{"row 62: meta is an array", `{"meta":[],`, "}"},
		{"row 62: meta is null", `{"meta":null,`, "}"},
		{"row 62: meta is not there", `{"message":"Operation was successful.",`, "}"},
		{"row 62: meta is full", `{"meta":{"page":1,"more":{"a":[]}},`, "}"},
		{"row 63: the message is a number", `{"message":1,`, "}"},
		{"row 63: the message is an object", `{"message":{"en":"x"},`, "}"},
		{"row 63: the message is null", `{"message":null,`, "}"},
		{"row 63: the message is not there", "{", "}"},
		{"row 63: the message has 1 MB", `{"message":"` + strings.Repeat("é", 1<<19) + `",`, "}"},
		{"the message comes last", "{", `,"message":"Operation was successful."}`},
		{"names in escapes", `{"\u006dessage":"x","\u006deta":{},`, "}"},
		{"spaces everywhere", "\t{\r\n", "\n}\n"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			body := tt.before + `"result": ` + s.result + tt.after
			var response gateway.Response
			c := cannedClient(t, s.status, body)
			result, err := s.call(t.Context(), c, gateway.WithResponse(&response))
			require.NoError(t, err)
			assertInvariants(t, result, err)
			assert.LessOrEqual(t, len(response.Message), 1<<10)
			assert.Equal(t, s.result, string(response.Result))
		})
	}
}

// An answer that is cut off anywhere is never a success, whatever was read of
// it.
func TestDecode_truncated(t *testing.T) {
	t.Parallel()
	forEach(t, "row 57: cut at every byte", func(t *testing.T, s subject) {
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

// The same with a connection that says how much should have come.
func TestDecode_truncatedConnection(t *testing.T) {
	t.Parallel()
	forEach(t, "row 57: a connection cut at some bytes", func(t *testing.T, s subject) {
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

// A wireField is a member of a record as INTERFACE.md lists it.
type wireField struct {
	name string
	kind string // what is accepted in its place: a row of wrongValues
	good string
}

// wrongValues are what a field of a kind does not accept.
var wrongValues = map[string][]string{
	"identifier": {`null`, `""`, `1`, `true`, `{}`, `[]`, `"other-than-asked"`},
	"text":       {`null`, `1`, `true`, `{}`, `[]`},
	"nonEmpty":   {`null`, `""`, `1`, `true`, `{}`, `["x"]`},
	"amount":     {`null`, `""`, `"x"`, `true`, `{}`, `["1"]`},
	"flag":       {`null`, `"true"`, `"false"`, `""`, `1`, `0`, `{}`, `[]`},
	"integer":    {`null`, `"12"`, `1.5`, `true`, `{}`, `[1]`},
	"record":     {`null`, `"x"`, `1`, `true`, `[]`, `[{}]`},
}

var (
	networkFields = []wireField{
		{"id", "nonEmpty", `"n-1"`},
		{"name", "text", `"Tron (TRC20)"`},
		{"isActive", "flag", `true`},
		{"created_at", "time", `"2023-05-14T09:21:43.000Z"`},
		{"updated_at", "time", `"2023-06-01T00:00:00.000Z"`},
	}
	coinFields = []wireField{
		{"id", "nonEmpty", `"c-1"`},
		{"name", "text", `"Tether"`},
		{"symbol", "nonEmpty", `"USDT"`},
		{"precision", "integer", `6`},
		{"minAmount", "amount", `"0.00000100"`},
		{"isActive", "flag", `true`},
		{"created_at", "time", `"2023-05-14T09:21:43.000Z"`},
		{"updated_at", "time", `"2023-06-01T00:00:00.000Z"`},
	}
	pairFields = []wireField{
		{"id", "identifier", `"` + pairID + `"`},
		{"withdrawalFee", "amount", `"1.5"`},
		{"swapFee", "amount", `"0.1"`},
		{"minWithdraw", "amount", `"10"`},
		{"maxWithdraw", "amount", `"1000"`},
		{"depositable", "flag", `true`},
		{"withdrawable", "flag", `false`},
		{"confirmation", "integer", `20`},
		{"arrivalTime", "integer", `5`},
		{"expirationTime", "integer", `60`},
		{"networkId", "nonEmpty", `"n-1"`},
		{"coinId", "nonEmpty", `"c-1"`},
		{"created_at", "time", `"2023-05-14T09:21:43.000Z"`},
		{"updated_at", "time", `"2023-06-01T00:00:00.000Z"`},
		{"network", "record", written(networkFields, "", "")},
		{"coin", "record", written(coinFields, "", "")},
	}
	withdrawalFields = []wireField{
		{"status", "nonEmpty", `"PENDING"`},
		{"destination", "text", `"TXYZ"`},
		{"amount", "amount", `"25.000001"`},
		{"fee", "amount", `"1.5"`},
		{"coin", "text", `"USDT"`},
		{"network", "text", `"Tron (TRC20)"`},
		{"withdrawRequestId", "identifier", `"` + requestID + `"`},
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

// A recordCase is a record inside an answer to a method.
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
		{"CoinNetworksBySymbol", "/result", pairFields, same, true},
		{"CoinNetworksBySymbol", "/result/1", pairFields, second, true},
		{"CoinNetworks", "/result/1", pairFields, second, true},
		{"CoinNetworks", "/result/1/network", networkFields, func(r string) string { return second(inPair("network")(r)) }, true},
		{"CoinNetworks", "/result/1/coin", coinFields, func(r string) string { return second(inPair("coin")(r)) }, true},
		{"Withdrawal", "/result", withdrawalFields, same, false},
		{"Withdrawal", "/result/0", withdrawalFields, func(r string) string { return "[" + r + "]" }, false},
	}
}

// Each field of each record: missing, null and of every wrong type. A time is
// lenient, all others name themselves.
func TestDecode_fields(t *testing.T) {
	t.Parallel()
	for _, record := range recordCases() {
		s := subjectNamed(record.subject)
		for _, field := range record.fields {
			t.Run(fmt.Sprintf("%s %s/%s", s.name, record.place, field.name), func(t *testing.T) {
				t.Parallel()
				pointer := record.place + "/" + field.name
				body := func(value string) string {
					return enveloped(record.wrap(written(record.fields, field.name, value)))
				}
				if field.kind == "time" {
					assertLenient(t, s, body)
					return
				}
				assertNotUnderstood(t, s, body(""), pointer, "is missing")
				for _, value := range wrongValues[field.kind] {
					if value == `"other-than-asked"` && record.anyID {
						continue
					}
					assertNotUnderstood(t, s, body(value), pointer, "")
				}
			})
		}
	}
}

// assertLenient asserts that a time can be anything.
func assertLenient(t *testing.T, s subject, body func(value string) string) {
	t.Helper()
	for _, value := range []string{"", `null`, `""`, `"x"`, `1684056103`, `true`, `{}`, `[{"a":1}]`} {
		result, err := s.call(t.Context(), cannedClient(t, s.status, body(value)))
		require.NoError(t, err, "a time of %s", value)
		assertInvariants(t, result, err)
	}
}

// A text that may be empty is.
func TestDecode_emptyTexts(t *testing.T) {
	t.Parallel()
	for _, record := range recordCases() {
		s := subjectNamed(record.subject)
		for _, field := range record.fields {
			if field.kind != "text" {
				continue
			}
			t.Run(fmt.Sprintf("%s %s/%s", s.name, record.place, field.name), func(t *testing.T) {
				t.Parallel()
				body := enveloped(record.wrap(written(record.fields, field.name, `""`)))
				_, err := s.call(t.Context(), cannedClient(t, s.status, body))
				require.NoError(t, err)
			})
		}
	}
}

// Every field goes where it belongs, with exactly its value.
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
		"CoinNetworks":         []gateway.CoinNetwork{pair},
		"CoinNetwork":          &pair,
		"CoinNetworkBySymbol":  &pair,
		"CoinNetworksBySymbol": []gateway.CoinNetwork{pair},
		"Withdrawal":           withdrawal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := subjectNamed(name)
			got, err := s.call(t.Context(), cannedClient(t, s.status, s.body()))
			require.NoError(t, err)
			assert.Equal(t, want, got)
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

// Members may come in any order.
func TestDecode_order(t *testing.T) {
	t.Parallel()
	turned := func(fields []wireField) []wireField {
		var all []wireField
		for i := range fields {
			all = append(all, fields[len(fields)-1-i])
		}
		return all
	}
	forth, err := cannedClient(t, 200, enveloped(written(pairFields, "", ""))).CoinNetwork(t.Context(), pairID)
	require.NoError(t, err)
	back, err := cannedClient(t, 200, enveloped(written(turned(pairFields), "", ""))).CoinNetwork(t.Context(), pairID)
	require.NoError(t, err)
	assert.Equal(t, forth, back)
}

func TestDecode_names(t *testing.T) {
	t.Parallel()
	s := subjectNamed("Withdrawal")
	renamed := func(old, new string) string { return enveloped(strings.Replace(withdrawalJSON, old, new, 1)) }
	t.Run("row 58: a status twice", func(t *testing.T) {
		t.Parallel()
		assertBroken(t, s, renamed(`"status":`, `"status":"COMPLETED","status":`), "/result/status", "duplicate")
	})
	t.Run("row 58: an amount twice", func(t *testing.T) {
		t.Parallel()
		assertBroken(t, s, renamed(`"amount":`, `"amount":"1","amount":`), "/result/amount", "duplicate")
	})
	t.Run("row 58: an amount twice, once in escapes", func(t *testing.T) {
		t.Parallel()
		assertBroken(t, s, renamed(`"fee":`, `"\u0061mount":"1","fee":`), "/result/amount", "duplicate")
	})
	t.Run("row 58: an unknown name twice", func(t *testing.T) {
		t.Parallel()
		assertBroken(t, s, renamed(`"fee":`, `"x":"1","x":2,"fee":`), "/result/x", "duplicate")
	})
	t.Run("a name in upper case is another name", func(t *testing.T) {
		t.Parallel()
		assertNotUnderstood(t, s, renamed(`"status":`, `"STATUS":`), "/result/status", "is missing")
	})
	t.Run("a name in upper case does not overrule", func(t *testing.T) {
		t.Parallel()
		body := renamed(`"status":`, `"STATUS":"COMPLETED","Status":"FAILED","status":`)
		got, err := cannedClient(t, 201, body).Withdrawal(t.Context(), requestID)
		require.NoError(t, err)
		assert.Equal(t, gateway.WithdrawalPending, got.Status)
	})
	t.Run("a name in escapes is the name", func(t *testing.T) {
		t.Parallel()
		got, err := cannedClient(t, 201, renamed(`"status":`, `"\u0073tatus":`)).Withdrawal(t.Context(), requestID)
		require.NoError(t, err)
		assert.Equal(t, gateway.WithdrawalPending, got.Status)
	})
	t.Run("row 59: unknown members are passed over, and the raw result has them", func(t *testing.T) {
		t.Parallel()
		var response gateway.Response
		body := renamed(`"fee":`, `"txId":{"a":[1,"x"]},"fee":`)
		_, err := cannedClient(t, 201, body).Withdrawal(t.Context(), requestID, gateway.WithResponse(&response))
		require.NoError(t, err)
		assert.Contains(t, string(response.Result), `"txId":{"a":[1,"x"]}`)
	})
}

func TestDecode_amounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, wire  string
		coefficient string
		exponent    int32
	}{
		{"row 64: a number", `1.10`, "110", -2},
		{"row 64: a number that float64 can not hold", `0.1000000000000000055511151231257827`, "1000000000000000055511151231257827", -34},
		{"row 64: a large number", `123456789012345678901234567890.12345678`, "12345678901234567890123456789012345678", -8},
		{"row 64: a text", `"1.10"`, "110", -2},
		{"row 65: a small exponent", `1e-7`, "1", -7},
		{"row 65: an exponent in upper case", `1E-7`, "1", -7},
		{"row 65: an exponent in a text", `"1E-7"`, "1", -7},
		{"row 65: an exponent with a plus", `"1.5e+3"`, "15", 2},
		{"row 65: the largest exponent", `1e64`, "1", 64},
		{"row 65: the smallest exponent", `1e-64`, "1", -64},
		{"row 69: 128 digits", `"` + strings.Repeat("9", 128) + `"`, strings.Repeat("9", 128), 0},
		{"row 70: a negative amount", `"-1.50"`, "-150", -2},
		{"row 70: a negative number", `-1.50`, "-150", -2},
		{"zero", `"0"`, "0", 0},
		{"zero with places", `0.00`, "0", -2},
		{"minus zero", `-0`, "0", 0},
		{"18 digits", `"999999999999999999"`, "999999999999999999", 0},
		{"19 digits", `"9999999999999999999"`, "9999999999999999999", 0},
		{"a text in escapes", `"\u0031.5"`, "15", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := enveloped(written(withdrawalFields, "amount", tt.wire))
			got, err := cannedClient(t, 201, body).Withdrawal(t.Context(), requestID)
			require.NoError(t, err)
			assert.Equal(t, tt.coefficient, got.Amount.Coefficient().String())
			assert.Equal(t, tt.exponent, got.Amount.Exponent())
		})
	}
}

// badAmounts are no amounts, as JSON.
var badAmounts = []struct{ name, wire, reason string }{
	{"row 66: a huge exponent in a text", `"1e1000000000"`, "is not an amount of money"},
	{"row 66: a tiny exponent in a text", `"1e-1000000000"`, "is not an amount of money"},
	{"row 66: a huge exponent", `1e99999`, "is not an amount of money"},
	{"row 66: an exponent that overflows every integer", `"1e99999999999999999999999"`, "is not an amount of money"},
	{"row 66: an exponent of 65", `1e65`, "is not an amount of money"},
	{"row 66: an exponent of -65", `"1e-65"`, "is not an amount of money"},
	{"row 67: NaN", `"NaN"`, "is not a decimal number"},
	{"row 67: infinity", `"Infinity"`, "is not a decimal number"},
	{"row 67: a minus", `"-"`, "is not a decimal number"},
	{"row 67: a plus", `"+1"`, "is not a decimal number"},
	{"row 67: nothing", `""`, "is empty"},
	{"row 67: spaces around", `" 1 "`, "is not a decimal number"},
	{"row 67: a space", `" "`, "is not a decimal number"},
	{"row 67: a comma for the point", `"1,5"`, "is not a decimal number"},
	{"row 67: thousands", `"1,000.5"`, "is not a decimal number"},
	{"row 67: an underscore", `"1_000"`, "is not a decimal number"},
	{"row 67: hexadecimal", `"0x1"`, "is not a decimal number"},
	{"row 67: another script's digit", `"१"`, "is not a decimal number"},
	{"row 67: a currency", `"1 USDT"`, "is not a decimal number"},
	{"row 67: two points", `"1.2.3"`, "is not a decimal number"},
	{"row 67: a point at the end", `"1."`, "is not a decimal number"},
	{"row 67: a point in front", `".5"`, "is not a decimal number"},
	{"row 67: a leading zero", `"01"`, "is not a decimal number"},
	{"row 67: an exponent without digits", `"1e"`, "is not a decimal number"},
	{"row 67: an exponent of a sign", `"1e-"`, "is not a decimal number"},
	{"row 67: an exponent with a point", `"1e1.5"`, "is not a decimal number"},
	{"row 67: two exponents", `"1e1e1"`, "is not a decimal number"},
	{"row 67: an exponent of nothing", `"e5"`, "is not a decimal number"},
	{"row 67: a NUL at the end", `"1\u0000"`, "is not a decimal number"},
	{"row 68: null", `null`, "is null, not an amount"},
	{"row 68: a boolean", `false`, "is a boolean, not an amount"},
	{"row 68: an object", `{}`, "is an object, not an amount"},
	{"row 68: an array", `[]`, "is an array, not an amount"},
	{"row 69: 400 digits", `"` + strings.Repeat("9", 400) + `"`, "is not an amount of money"},
	{"row 69: 129 digits", strings.Repeat("9", 129), "is not an amount of money"},
	{"row 69: 400 zeros", `"` + strings.Repeat("0", 400) + `"`, "is not an amount of money"},
	{"row 69: 400 decimal places", `0.` + strings.Repeat("0", 400), "is not an amount of money"},
}

func TestDecode_badAmounts(t *testing.T) {
	t.Parallel()
	for _, tt := range badAmounts {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertNotUnderstood(t, subjectNamed("Withdrawal"),
				enveloped(written(withdrawalFields, "fee", tt.wire)), "/result/fee", tt.reason)
			assertNotUnderstood(t, subjectNamed("CoinNetworks"),
				enveloped("["+pairJSON+","+written(pairFields, "withdrawalFee", tt.wire)+"]"), "/result/1/withdrawalFee", tt.reason)
			assertNotUnderstood(t, subjectNamed("ExchangeRates"),
				enveloped(`[{"symbol":"BTC","usd":"1","eur":`+tt.wire+`}]`), "/result/0/eur", tt.reason)
			assertNotUnderstood(t, subjectNamed("Balance"),
				enveloped(`[{"coin":"BTC","amount":`+tt.wire+`}]`), balancePointer(tt.wire), "")
		})
	}
}

// balancePointer is where a bad amount is found in a balance: one that is an
// object or an array is no amount to begin with.
func balancePointer(wire string) string {
	if wire == "{}" || wire == "[]" {
		return "/result/0"
	}
	return "/result/0/amount"
}

// What a bad amount costs is bounded: it is refused by its text. This test is
// not parallel, because it measures.
func TestDecode_badAmountsAreCheap(t *testing.T) {
	s := subjectNamed("Withdrawal")
	baseline := allocated(t, s, enveloped(written(withdrawalFields, "amount", `"1.5"`)))
	for _, tt := range badAmounts {
		got := allocated(t, s, enveloped(written(withdrawalFields, "amount", tt.wire)))
		assert.Less(t, got, baseline+64<<10, "%s: %d bytes over %d", tt.name, got-baseline, baseline)
	}
}

// So is what depth costs, though the place of the fault is deep. This test is
// not parallel, because it measures.
func TestDecode_depthIsCheap(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)
	for _, s := range subjects() {
		got := allocated(t, s, enveloped(deep))
		assert.Less(t, got, uint64(1<<20), "row 78: %s allocates %d bytes", s.name, got)
	}
}

// allocated is how many bytes a call allocates, at best of three.
func allocated(t *testing.T, s subject, body string) uint64 {
	t.Helper()
	c := cannedClient(t, s.status, body)
	least := ^uint64(0)
	for range 3 {
		least = min(least, weighed(func() { _, _ = s.call(t.Context(), c) }))
	}
	return least
}

func TestDecode_integers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, wire string
		want       int
	}{
		{"row 72: a point and a zero", `1.0`, 1},
		{"row 72: an exponent", `1e3`, 1000},
		{"row 72: an exponent that makes it whole", `1.5e1`, 15},
		{"row 72: many zeros", `20.000000`, 20},
		{"row 73: minus one is data", `-1`, -1},
		{"zero", `0`, 0},
		{"minus zero", `-0`, 0},
		{"the largest", `9223372036854775807`, 1<<63 - 1},
		{"the smallest", `-9223372036854775808`, -1 << 63},
		{"the largest, by an exponent", `9223372036854775807e0`, 1<<63 - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := enveloped(written(pairFields, "confirmation", tt.wire))
			got, err := cannedClient(t, 200, body).CoinNetwork(t.Context(), pairID)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got.Confirmations)
		})
	}
	for _, tt := range []struct{ name, wire, reason string }{
		{"row 72: a fraction", `1.5`, "is not an integer in range"},
		{"row 72: a fraction by an exponent", `15e-1`, "is not an integer in range"},
		{"row 73: more than 64 bits", `9999999999999999999`, "is not an integer in range"},
		{"row 73: one above the largest", `9223372036854775808`, "is not an integer in range"},
		{"row 73: one below the smallest", `-9223372036854775809`, "is not an integer in range"},
		{"row 73: more than 64 bits by an exponent", `1e19`, "is not an integer in range"},
		{"row 73: a huge exponent", `1e1000000000`, "is not an integer in range"},
		{"row 73: a text", `"12"`, "is text, not a number"},
		{"row 73: null", `null`, "is null, not a number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertNotUnderstood(t, subjectNamed("CoinNetwork"),
				enveloped(written(pairFields, "confirmation", tt.wire)), "/result/confirmation", tt.reason)
		})
	}
}

func TestDecode_flags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, wire, reason string }{
		{"row 71: true as text", `"true"`, "is text, not a boolean"},
		{"row 71: one", `1`, "is a number, not a boolean"},
		{"row 71: zero", `0`, "is a number, not a boolean"},
		{"row 71: null", `null`, "is null, not a boolean"},
		{"row 71: an object", `{}`, "is an object, not a boolean"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assertNotUnderstood(t, subjectNamed("CoinNetwork"),
				enveloped(written(pairFields, "depositable", tt.wire)), "/result/depositable", tt.reason)
		})
	}
}

func TestDecode_times(t *testing.T) {
	t.Parallel()
	second := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name, wire string
		want       time.Time
	}{
		{"row 76: seconds", `"2024-01-02T03:04:05Z"`, second},
		{"row 76: milliseconds", `"2024-01-02T03:04:05.678Z"`, second.Add(678 * time.Millisecond)},
		{"row 76: microseconds", `"2024-01-02T03:04:05.000000Z"`, second},
		{"row 76: an offset of zero", `"2024-01-02T03:04:05+00:00"`, second},
		{"row 76: another offset", `"2024-01-02T06:34:05+03:30"`, second},
		{"row 76: an offset without a colon", `"2024-01-02T06:34:05+0330"`, second},
		{"row 76: nanoseconds", `"2024-01-02T03:04:05.123456789Z"`, second.Add(123456789)},
		{"row 76: twelve digits of a second", `"2024-01-02T03:04:05.123456789012Z"`, second.Add(123456789)},
		{"row 76: no zone", `"2024-01-02T03:04:05"`, second},
		{"row 76: no zone, milliseconds", `"2024-01-02T03:04:05.5"`, second.Add(500 * time.Millisecond)},
		{"row 76: a space for the T", `"2024-01-02 03:04:05"`, second},
		{"row 76: a space for the T, and a zone", `"2024-01-02 03:04:05Z"`, second},
		{"row 77: all zeros", `"0000-00-00 00:00:00"`, time.Time{}},
		{"row 77: nothing", `""`, time.Time{}},
		{"row 77: seconds since 1970", `1704164645`, time.Time{}},
		{"row 77: seconds since 1970 as text", `"1704164645"`, time.Time{}},
		{"row 77: a leap second", `"2016-12-31T23:59:60Z"`, time.Time{}},
		{"row 77: the year 99999", `"99999-01-02T03:04:05Z"`, time.Time{}},
		{"row 77: the 31st of February", `"2024-02-31T03:04:05Z"`, time.Time{}},
		{"row 77: words", `"yesterday"`, time.Time{}},
		{"row 77: null", `null`, time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := enveloped("[" + written(pairFields, "created_at", tt.wire) + "]")
			got, err := cannedClient(t, 200, body).CoinNetworks(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tt.want, got[0].CreatedAt)
			assert.Equal(t, 2023, got[0].UpdatedAt.Year(), "the field after it is read")
		})
	}
}

func TestDecode_listing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"CoinNetworks", "CoinNetworksBySymbol"} {
		s := subjectNamed(name)
		t.Run("row 81: one bad element of 500, "+name, func(t *testing.T) {
			t.Parallel()
			elements := strings.Split(strings.Repeat(pairJSON+"\x00", 499), "\x00")[:499]
			bad := written(pairFields, "withdrawalFee", `"abc"`)
			elements = append(elements[:417:417], append([]string{bad}, elements[417:]...)...)
			body := enveloped("[" + strings.Join(elements, ",") + "]")
			assertNotUnderstood(t, s, body, "/result/417/withdrawalFee", "is not a decimal number")
		})
		t.Run("an element that is no record, "+name, func(t *testing.T) {
			t.Parallel()
			for _, element := range []string{"null", "[]", `"x"`, "1"} {
				assertNotUnderstood(t, s, enveloped("["+pairJSON+","+element+"]"), "/result/1", "not an object")
			}
		})
		t.Run("a listing of none is empty, not nil, "+name, func(t *testing.T) {
			t.Parallel()
			got, err := s.call(t.Context(), cannedClient(t, 200, enveloped("[]")))
			require.NoError(t, err)
			assert.Equal(t, []gateway.CoinNetwork{}, got)
		})
		t.Run("the order of the answer stays, "+name, func(t *testing.T) {
			t.Parallel()
			body := enveloped("[" + written(pairFields, "id", `"b"`) + "," + written(pairFields, "id", `"a"`) + "]")
			got, err := s.call(t.Context(), cannedClient(t, 200, body))
			require.NoError(t, err)
			pairs := got.([]gateway.CoinNetwork)
			assert.Equal(t, []string{"b", "a"}, []string{pairs[0].ID, pairs[1].ID})
		})
	}
	t.Run("row 61: an object where an array is expected", func(t *testing.T) {
		t.Parallel()
		assertNotUnderstood(t, subjectNamed("CoinNetworks"), enveloped("{}"), "/result", "is an object, not an array")
		assertNotUnderstood(t, subjectNamed("CoinNetworks"), enveloped(pairJSON), "/result", "is an object, not an array")
	})
	t.Run("one record is an array of one by symbol", func(t *testing.T) {
		t.Parallel()
		got, err := cannedClient(t, 200, enveloped(pairJSON)).CoinNetworksBySymbol(t.Context(), "USDT")
		require.NoError(t, err)
		require.Len(t, got, 1)
		assert.Equal(t, pairID, got[0].ID)
	})
	for _, name := range []string{"CoinNetwork", "CoinNetworkBySymbol", "Withdrawal"} {
		s := subjectNamed(name)
		t.Run("an array of one record is the record, "+name, func(t *testing.T) {
			t.Parallel()
			got, err := s.call(t.Context(), cannedClient(t, s.status, enveloped("["+s.result+"]")))
			require.NoError(t, err)
			assertInvariants(t, got, err)
		})
		t.Run("an array of two records is not, "+name, func(t *testing.T) {
			t.Parallel()
			assertNotUnderstood(t, s, enveloped("["+s.result+","+s.result+"]"), "/result/0", "several records")
		})
	}
}

// An error envelope that comes with a 2xx is an APIError.
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
	t.Run("a meta that is larger than what is kept of a body is kept as a whole", func(t *testing.T) {
		t.Parallel()
		meta := `{"why":"` + strings.Repeat("x", 9<<10) + `"}`
		got, err := cannedClient(t, 200, `{"message":"no","result":[],"meta":`+meta+`}`).Withdrawal(t.Context(), requestID)
		assertInvariants(t, got, err)
		var refusal *gateway.APIError
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, meta, string(refusal.Meta))
	})
	t.Run("the documented text for a missing key counts with a 2xx too", func(t *testing.T) {
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
	assert.Equal(t, s.op, refusal.Op)
	assert.Equal(t, s.status, refusal.StatusCode)
	assert.Equal(t, message, refusal.Message)
	assert.Equal(t, "{}", string(refusal.Meta))
	assert.NotEmpty(t, refusal.Body)
}

func TestDecode_status(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 203, 206, 226, 299} {
		forEach(t, fmt.Sprintf("row 84: status %d", status), func(t *testing.T, s subject) {
			got, err := s.call(t.Context(), cannedClient(t, status, s.body()))
			require.NoError(t, err)
			assertInvariants(t, got, err)
		})
	}
	forEach(t, "row 84: status 204 has no body", func(t *testing.T, s subject) {
		got, err := s.call(t.Context(), cannedClient(t, 204, ""))
		assertInvariants(t, got, err)
		assert.ErrorContains(t, decodeErrorOf(t, s, err), "the body is empty")
	})
}

func TestDecode_contentType(t *testing.T) {
	t.Parallel()
	forEach(t, "row 83: a page says that it is one", func(t *testing.T, s subject) {
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
		assert.Len(t, w.Requests(), 1, "asking again would not help")
	})
	forEach(t, "JSON is read whatever it calls itself", func(t *testing.T, s subject) {
		w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/plain")
			rw.WriteHeader(s.status)
			_, _ = io.WriteString(rw, s.body())
		})
		_, err := s.call(t.Context(), newClient(t, w.URL))
		require.NoError(t, err)
	})
	forEach(t, "row 85: a Retry-After on a success is ignored", func(t *testing.T, s subject) {
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

// unending is an answer without an end that counts what is taken of it.
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

// Of an answer over the limit no more is taken than the limit says.
func TestDecode_tooLarge(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for _, tt := range []struct{ name, start, more string }{
		{"row 79: a text without an end", `{"message":"`, "x"},
		{"row 79: a text without an end in the result", `{"result":"`, "x"},
		{"row 79: a name without an end", `{"`, "x"},
		{"row 79: spaces without an end", "", " "},
		{"row 79: an array without an end", `{"x":[0`, ",0"},
		{"row 79: a number without an end", `{"x":1`, "0"},
		{"row 79: records without an end", `{"result":[` + pairJSON, "," + pairJSON},
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
		// A reader that knows already that the answer is wrong stops there.
		assert.NotEmpty(t, wrong.Body)
		return
	}
	var failure *gateway.TransportError
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, gateway.PhaseRead, failure.Phase)
	assert.ErrorIs(t, err, gateway.ErrResponseTooLarge)
	assert.False(t, gateway.SafeToRetry(err))
}

// The limit is exact: an answer of just so many bytes is read.
func TestDecode_limit(t *testing.T) {
	t.Parallel()
	forEach(t, "row 79: the limit is exact", func(t *testing.T, s subject) {
		body := s.body()
		_, err := s.call(t.Context(), cannedClient(t, s.status, body, gateway.WithMaxResponseBytes(int64(len(body)))))
		require.NoError(t, err)
		_, err = s.call(t.Context(), cannedClient(t, s.status, body, gateway.WithMaxResponseBytes(int64(len(body)-1))))
		require.Error(t, err)
		assertTooLarge(t, s, err)
	})
	forEach(t, "the smallest limits do not trip over a byte-order mark", func(t *testing.T, s subject) {
		for limit := int64(1); limit <= 4; limit++ {
			_, err := s.call(t.Context(), cannedClient(t, s.status, "\ufeff"+s.body(), gateway.WithMaxResponseBytes(limit)))
			require.Error(t, err)
			assertTooLarge(t, s, err)
		}
	})
}

// The answer may come in pieces of any size.
func TestDecode_pieces(t *testing.T) {
	t.Parallel()
	forEach(t, "row 54: byte by byte, after a byte-order mark", func(t *testing.T, s subject) {
		for _, body := range []string{s.body(), "\ufeff" + s.body()} {
			transport := canned{status: s.status, body: func() io.Reader { return bytewise{strings.NewReader(body)} }}
			whole, err := s.call(t.Context(), cannedClient(t, s.status, body))
			require.NoError(t, err)
			pieces, err := s.call(t.Context(), cannedClient(t, 0, "", gateway.WithHTTPClient(&http.Client{Transport: transport})))
			require.NoError(t, err)
			if rates, ok := pieces.(*gateway.ExchangeRates); ok {
				rates.FetchedAt = whole.(*gateway.ExchangeRates).FetchedAt
			}
			assert.True(t, reflect.DeepEqual(whole, pieces))
		}
	})
}

// bytewise gives out one byte at a time, and sometimes none.
type bytewise struct{ io.Reader }

func (b bytewise) Read(p []byte) (int, error) { return b.Reader.Read(p[:min(len(p), 1)]) }
