package gateway_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// A response that is cut anywhere is never a success.
func TestEnvelope_truncated(t *testing.T) {
	t.Parallel()
	forEach(t, "cut at every byte", func(t *testing.T, s subject) {
		for n := range len(s.body()) {
			result, err := s.call(t.Context(), cannedClient(t, s.status, s.body()[:n]))
			require.True(t, isZero(result), "cut after %d bytes", n)
			require.Equal(t, s.body()[:n], string(decodeErrorOf(t, s, err).Body))
		}
	})
}

// Without an envelope a response is not understood, whatever its result. Package doc tests all that is malformed.
// I-8, I-38, I-43
func TestEnvelope_broken(t *testing.T) {
	t.Parallel()
	const success = `"message":"Operation was successful."`
	for _, tt := range []struct{ name, body, pointer, reason string }{ // RESULT is a good result
		{"a byte-order mark and spaces", "\ufeff \r\n\t ", "", "the body is empty"},
		{"a second byte-order mark", "\ufeff\ufeff{}", "", "invalid character"},
		{"null", "null", "", "is null, not an object"},
		{"an array of an envelope", `[{"result":RESULT}]`, "", "is an array, not an object"},
		{"an empty object", "{}", "/result", "is missing"},
		{"an envelope without a result", "{" + success + `,"meta":{}}`, "/result", "is missing"},
		{"a result by another name", "{" + success + `,"Result":RESULT,"data":RESULT}`, "/result", "is missing"},
		{"a result of null", "{" + success + `,"result":null}`, "/result", "is null"},
		{"null and nothing else", `{"result":null}`, "/result", "is null"},
		{"more after the end", `{"result":RESULT}}`, "", "there is more after the end"},
		{"a result twice", `{"result":RESULT,"result":[]}`, "/result", "duplicate"},
		{"a result twice, first as null", `{"result":null,"result":RESULT}`, "/result", ""},
		{"a name twice in a result", "{" + success + `,"result":[{"a":1,"a":1}]}`, "/result/0/a", "duplicate"},
		{"a name twice in meta", `{"result":RESULT,"meta":{"a":{"b":1,"b":2}}}`, "/meta/a/b", "duplicate"},
		{"a name twice in an unknown member", `{"result":RESULT,"x":[{"b":1,"b":2}]}`, "/x/0/b", "duplicate"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			assertNotUnderstood(t, s, strings.ReplaceAll(tt.body, "RESULT", s.result), tt.pointer, tt.reason)
		})
	}
}

// The forms that an envelope may have.
// I-6, I-39, I-42, I-44
func TestEnvelope_lenient(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<19)
	for _, tt := range []struct {
		name, before, after, message, meta string
		page                               bool // a balance may be one page of several
	}{
		{"a byte-order mark and spaces", "\ufeff\r\n {", "}\r\n ", "", "", false},
		{"unknown members", `{"x":1,"y":{"z":[null]},`, `,"w":null}`, "", "", false},
		{"members that differ in case", `{"MESSAGE":1,"Result":null,`, `,"META":[]}`, "", "", false},
		{"names in escapes", `{"\u006dessage":"x","\u006deta":{"a":1},`, "}", "x", `{"a":1}`, true},
		{"meta is an array", `{"meta":[],`, "}", "", "[]", false},
		{"meta is missing", `{"message":"Operation was successful.",`, "}", "Operation was successful.", "", false},
		{"meta is full", `{"meta":{"page":1,"more": {"a":[]}},`, "}", "", `{"page":1,"more": {"a":[]}}`, true},
		{
			"meta has 64 KiB", `{"meta":"` + strings.Repeat("x", 64<<10-2) + `",`, "}", "",
			`"` + strings.Repeat("x", 64<<10-2) + `"`, true,
		},
		{"meta has more", `{"meta":"` + strings.Repeat("x", 64<<10-1) + `",`, "}", "", "", true},
		{"the message is a number", `{"message":1,`, "}", "", "", false},
		{"the message is an object", `{"message":{"en":"x"},`, "}", "", "", false},
		{
			"the message has 1 KiB", `{"message":"` + strings.Repeat("x", 1<<10) + `",`, "}", strings.Repeat("x", 1<<10), "",
			false,
		},
		{"the message has 1 MB", `{"message":"` + long + `",`, "}", long[:1<<10], "", false},
		{"the message is cut between characters", `{"message":"x` + long + `",`, "}", "x" + long[:1<<10-2], "", false},
		{"the message comes last", "{", `,"message":"a\u0062c"}`, "abc", "", false},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			body := tt.before + `"result" : ` + s.result + tt.after
			var response gateway.Response
			result, err := s.call(t.Context(), cannedClient(t, s.status, body), gateway.WithResponse(&response))
			assertInvariants(t, result, err)
			isPage := s.name == "Balance" && tt.page
			if isPage || s.write && tt.message != "Operation was successful." {
				decodeErrorOf(t, s, err)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, tt.message, response.Message)
			assert.Equal(t, tt.meta, string(response.Meta))
			assert.Equal(t, s.result, string(response.Result))
		})
	}
}

// A character that is not Unicode costs the text that it is in. Wherever it is, a result has no mended text beside Raw,
// which is valid JSON; a response whose own text alone is bad is read, with one drift.
func TestEnvelope_character(t *testing.T) {
	t.Parallel()
	forEach(t, "in each place", func(t *testing.T, s subject) {
		body := strings.Replace(s.body(), `"meta":{}`, `"note":"abc"`, 1)
		for at := range body {
			bad := body[:at] + "\xff" + body[at+1:]
			if at%2 == 1 {
				bad = body[:at] + `\ud83d` + body[at:]
			}
			result, err := s.call(t.Context(), cannedClient(t, s.status, bad))
			assertInvariants(t, result, err)
			if err != nil {
				continue
			}
			switch got := result.(type) {
			case *gateway.ExchangeRates:
				require.True(t, utf8.Valid(got.Raw) && json.Valid(got.Raw))
				got.Raw, got.Skipped = nil, nil
			case *gateway.Balance:
				require.True(t, utf8.Valid(got.Raw) && json.Valid(got.Raw))
				got.Raw, got.Skipped = nil, nil
			case *gateway.Invoice:
				require.True(t, utf8.Valid(got.Raw) && json.Valid(got.Raw))
				address, _ := got.Text("address", "payAddress", "id", "invoiceId")
				require.NotContains(t, address, "\ufffd")
				got.Raw = nil
			}
			require.NotContains(t, invariant.Dump(result), "\ufffd", bad)
		}
	})
	forEach(t, "in a text that nobody reads", func(t *testing.T, s subject) {
		for _, bad := range []string{"\xe9", `\ud83d`, `a \udc00 b \ud83d`} {
			var drift []gateway.Drift
			c := cannedClient(t, s.status, strings.Replace(s.body(), `"meta":{}`, `"meta":{},"note":"`+bad+`"`, 1),
				gateway.WithObserver(gateway.Observer{Drift: func(_ context.Context,
					d gateway.Drift,
				) {
					drift = append(drift, d)
				}}))
			_, err := s.call(t.Context(), c)
			require.NoError(t, err)
			assert.Equal(t, []gateway.Drift{
				{
					Operation: s.op, Pointer: "/note", Kind: gateway.DriftUnexpectedValue,
					Reason: "has a character that is not Unicode",
				},
				{Operation: s.op, Pointer: "/note", Kind: gateway.DriftUnknownField},
			}, drift)
		}
	})
}

// The result of an error is nil unless the whole of it is there.
func TestEnvelope_resultOfAnError(t *testing.T) {
	t.Parallel()
	const kept = 1 << 20
	padded := func(before, result int) string {
		return `{"x":"` + strings.Repeat("x", before-len(`{"x":"","result":`)) + `","result":"` +
			strings.Repeat("r", result-2) + `"}`
	}
	for _, tt := range []struct{ name, body, want string }{
		{"a result with spaces around it", "{\"result\" :\r\n\t{\"a\": 1} , \"x\":1}", `{"a": 1}`},
		{"an envelope that is cut after it", `{"result":[1]`, "[1]"},
		{"a result that is cut", `{"result":[1,`, ""},
		{"a page", `<html>"result":[1]`, ""},
		{"beyond the part that is kept", padded(kept+1<<10, 8), ""},
		{"partly beyond the part that is kept", padded(kept-8, 2<<10), ""},
		{"within the part that is kept", padded(kept-16, 8), `"rrrrrr"`},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			var response gateway.Response
			_, err := s.call(t.Context(), cannedClient(t, 404, tt.body), gateway.WithResponse(&response))
			if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
				err = unknown.Cause
			}
			require.IsType(t, (*gateway.APIError)(nil), err)
			assert.Equal(t, tt.want, string(response.Result))
			assert.Equal(t, tt.want == "", response.Result == nil)
		})
	}
}

// A message is truncated after the key is removed, so that no part of it is left.
func TestEnvelope_key(t *testing.T) {
	t.Parallel()
	for before := 1<<10 - len(canary) - 2; before <= 1<<10+2; before++ {
		message := strings.Repeat("x", before) + canary + "y"
		for _, member := range []string{`"message":"` + message + `"`, `"errors":["` + message + `"]`} {
			var response gateway.Response
			body := `{` + member + `,"meta":{"` + canary + `":"` + canary + `"}}`
			_, err := cannedClient(t, 404, body).Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithResponse(&response))
			refusal, _ := errors.AsType[*gateway.APIError](err)
			require.Greater(t, len(refusal.Message), 1<<10-len(canary)-2)
			for _, text := range []string{refusal.Message, response.Message} {
				require.LessOrEqual(t, len(text), 1<<10)
				require.NotContains(t, text, canary[:2], "%d bytes before the key", before)
			}
			assert.JSONEq(t, `{"[REDACTED]":"[REDACTED]"}`, string(response.Meta))
			assertNoKey(t, err)
		}
	}
	// The key of a source, or of the call, is removed too.
	echo := through(statusTrip(404, refused(canary)))
	_, err := withdrawalCall(t.Context(), clientWithKeySource(t, "http://localhost", sameKey, echo))
	assert.ErrorContains(t, err, "[REDACTED]")
	another, err := gateway.New("http://localhost", "of-another-merchant", echo)
	require.NoError(t, err)
	_, err = another.Withdrawal(t.Context(), requestID, gateway.WithAPIKey(canary))
	assert.ErrorContains(t, err, "[REDACTED]")
}

// A guardOfRecords keeps the records that it receives.
type guardOfRecords struct {
	gateway.OrderGuard
	records []gateway.OrderRecord
}

func (g *guardOfRecords) End(ctx context.Context, o gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	g.records = append(g.records, r)
	return g.OrderGuard.End(ctx, o, r)
}

// However a peer writes the key, nothing that a call returns, reports, logs or records shows it.
func TestEnvelope_keyEscaped(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"sk_live_51H8xQ2eZvKYlo2C", "q83vEjRWeJC0r/+8kg==", "k&e<y>'a\"b\\c d/e",
		"a%2Fb%41cd&lt;12", "20261128",
	} {
		forEach(t, key, func(t *testing.T, s subject) {
			for i, spelled := range invariant.InJSON(key) {
				for _, tt := range []struct {
					status int
					body   string
				}{
					{s.status, `{"message":"Operation was successful.","KEY":"KEY","meta":{"KEY":["a KEY b"]},"result":` +
						strings.Replace(s.result, "{", `{"KEY":{"KEY":"KEY KEY"},`, 1) + `}`},
					{s.status, `{"message":"a KEY","meta":"KEY","result":"KEY"}`},
					{s.status, `{"message":"Operation was successful.","result":[{"KEY":[{"KEY":"KEY"}]}]}`},
					{400, `{"message":"a KEY","meta":{"KEY":"KEY"},"result":["KEY"],"errors":{"KEY":"KEY"}}`},
					{422, `{"error":{"KEY":["KEY"],"message":"KEY"},"KEY":"KEY","KEY":"KEY"}`},
					{401, `<p title="KEY">KEY</p>`},
					{404, `{"message":"a KEY","meta":{"KEY":"KEY","a":"\ud83d KEY`},
					{s.status, `{"message":"a KEY","KEY":nope`},
					{s.status, `"KEY"`},
					{307, "KEY"},
				} {
					tt.body = strings.ReplaceAll(tt.body, "KEY", spelled)
					got := observed(t, s, key, statusTrip(tt.status, tt.body, "X-Request-Id", key, "Location",
						"/"+url.PathEscape(key)+"?"+key, "X-"+strconv.Itoa(i), "a "+key))
					assert.NotContains(t, got, key, tt.body)
					assert.NotContains(t, got, spelled, tt.body)
				}
			}
			if strings.Trim(key, "0123456789") == "" {
				body := strings.Replace(s.body(), "{", `{"id":1`+key+`.50,"meta":[`+key+`],`, 1)
				got := observed(t, s, key, statusTrip(s.status,
					strings.Replace(body, `"result":`, `"result":{"id":`+key+`},"result2":`, 1)))
				assert.NotContains(t, got, key)
			}
		})
	}
}

// observed makes a call, and returns all that can be seen of it.
func observed(t *testing.T, s subject, key string, trip tripper) string {
	t.Helper()
	var log bytes.Buffer
	var seen []any
	var response gateway.Response
	guard := &guardOfRecords{OrderGuard: new(gateway.MemoryGuard)}
	c, err := gateway.New("http://localhost", key, over(trip), once(), gateway.WithOrderGuard(guard),
		gateway.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		gateway.WithObserver(gateway.Observer{
			End:     func(_ context.Context, c gateway.Call) { seen = append(seen, c) },
			Attempt: func(_ context.Context, a gateway.Attempt) { seen = append(seen, a) },
			Drift:   func(_ context.Context, d gateway.Drift) { seen = append(seen, d) },
		}))
	require.NoError(t, err)
	result, err := s.call(t.Context(), c, gateway.WithResponse(&response))
	seen = append(seen, result, err, response, guard.records)
	var all strings.Builder
	for _, v := range seen {
		encoded, _ := json.Marshal(v)
		fmt.Fprintf(&all, "%v %+v %s %s\n", v, v, encoded, invariant.Dump(v))
	}
	return all.String() + log.String()
}

// An error of the service that comes with a 2xx is an APIError: an empty result where a record is expected, and another
// message without a result.
// I-36, I-154, I-155, I-157
func TestEnvelope_refusedWithSuccess(t *testing.T) {
	t.Parallel()
	const missing = "x-api-key header is required"
	meta := `{"why":"` + strings.Repeat("x", 9<<10) + `"}` // larger than the part of a body that is kept
	for _, tt := range []struct {
		name, body, message, meta string
		is                        []error
	}{
		{
			"an empty array where a record is expected, whatever the message", enveloped("[]"), "Operation was successful.",
			"{}", nil,
		},
		{"an empty array with another message", refused("Coin is not supported"), "Coin is not supported", "{}", nil},
		{"an empty array without a message", `{"result":[]}`, "", "", nil},
		{"an empty object without a message", `{"result":{}}`, "", "", nil},
		{
			"null with another message", `{"message":"` + missing + `","meta":{},"result":null}`, missing, "{}",
			[]error{gateway.ErrMissingAPIKey},
		},
		{
			"null before another message", `{"result":null,"message":"` + missing + `"}`, missing, "",
			[]error{gateway.ErrMissingAPIKey},
		},
		{
			"another message alone", `{"message":"` + missing + `","meta":` + meta + `}`, missing, meta,
			[]error{gateway.ErrMissingAPIKey},
		},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			got, err := s.call(t.Context(), cannedClient(t, s.status, tt.body))
			assertInvariants(t, got, err)
			if strings.Contains(tt.name, "a record") && (s.result[0] == '[' || s.write) {
				assert.NoError(t, err, "it may return none")
				return
			}
			if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
				assertSentinels(t, err)
				err = lost.Cause
			}
			require.IsType(t, new(gateway.APIError), err)
			assertSentinels(t, err, tt.is...)
			seen := err.(*gateway.APIError)
			assert.Equal(t, []any{s.op, s.status, tt.message, tt.meta},
				[]any{seen.Operation, seen.StatusCode, seen.Message, string(seen.Meta)})
			assert.Equal(t, tt.body[:min(len(tt.body), 8<<10)], string(seen.Body))
		})
	}
}

// A proof is how much the body of an error response adds to its status. A status that its body contradicts proves
// nothing.
type proof int

const (
	never      proof = iota // it contradicts the status, or nobody can know whether it does
	byStatus                // no more than its status
	byMessage               // that the service has refused it, in the form of a framework
	byEnvelope              // that the service has refused it, in its own envelope
)

type refusalForm struct {
	name, body, message string
	proves              proof
	breaksOff           bool
}

// Every method meets every status, and an invoice with every form of body.
// I-37, I-128, I-156, I-158, I-159
func TestClient_EveryStatus(t *testing.T) {
	t.Parallel()
	const no = "Order is not acceptable"
	documented := refusalForm{"the documented envelope", refused(no), no, byEnvelope, false} // I-152
	forEach(t, documented.name, func(t *testing.T, s subject) { assertEveryStatus(t, s, documented) })
	for _, form := range []refusalForm{
		{"JSON with a message only", `{"message":"` + no + `"}`, no, byMessage, false},
		{"JSON without a message", `{"result":[],"meta":{}}`, "", byStatus, false},
		{"JSON of another shape", `["` + no + `"]`, "", byStatus, false},
		{"a web page", page, "", byStatus, false},
		{"nothing", "", "", byStatus, false},
		{"cut JSON", `{"message":"` + no[:9], "", never, false},
		{"JSON that is cut after its message", `{"message":"` + no + `","result":[`, no, never, false},
		{"the envelope in a body that breaks off", refused(no), no, never, true},
		{"the documented success", enveloped(invoiceJSON), "Operation was successful.", never, false},
	} {
		for _, name := range []string{"CreateInvoice", "Withdrawal"} {
			t.Run(form.name+", "+name, func(t *testing.T) {
				t.Parallel()
				assertEveryStatus(t, subjectNamed(name), form)
			})
		}
	}
}

func assertEveryStatus(t *testing.T, s subject, form refusalForm) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for _, status := range statuses {
			assertStatus(t, s, status, form)
		}
	})
}

func assertStatus(t *testing.T, s subject, status statusCase, form refusalForm) {
	t.Helper()
	sent, attempts := 0, 1
	if status.retried && !s.write {
		attempts = 3
	}
	c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
		sent++
		response := reply(status.status, form.body)
		if form.breaksOff {
			response.Body = io.NopCloser(io.MultiReader(response.Body, brokenReader{io.ErrUnexpectedEOF}))
		}
		return response, nil
	}))
	var seen gateway.Response
	got, err := s.call(t.Context(), c, gateway.WithResponse(&seen))
	at := fmt.Sprintf("%d with %s", status.status, form.name)
	assertInvariants(t, got, err)
	assert.Equal(t, attempts, sent, at)
	assert.Equal(t, []any{attempts, status.status, form.message}, []any{seen.Attempts, seen.StatusCode, seen.Message}, at)
	needs := byStatus
	if status.status == 403 {
		needs = byEnvelope
	} else if status.needsMessage {
		needs = byMessage
	}
	rejects := status.rejects && form.proves >= needs
	refusal, ok := err.(*gateway.APIError) //nolint:errorlint // the error itself, not one in it
	if s.write && !rejects {
		lost, isUnknown := err.(*gateway.OutcomeUnknownError) //nolint:errorlint // the error itself
		require.True(t, isUnknown, "%s: %v", at, err)
		for _, sentinel := range sentinels {
			is := sentinel == status.sentinel && (sentinel == gateway.ErrConflict || sentinel == gateway.ErrServer)
			assert.Equal(t, is, errors.Is(err, sentinel), "%s: %v", at, sentinel)
		}
		_, found := errors.AsType[*gateway.APIError](err)
		assert.False(t, found, "the refusal is a field only")
		refusal, ok = lost.Cause.(*gateway.APIError) //nolint:errorlint // the error itself
		assert.Same(t, refusal, lost.Response, at)
		assert.Equal(t, status.status, lost.StatusCode, at)
		assert.Equal(t, string(refusal.Body), string(lost.Body), at)
	}
	require.True(t, ok, "%s: %v", at, err)
	got = []any{refusal.Operation, refusal.StatusCode, refusal.Attempts, refusal.Message}
	assert.Equal(t, []any{s.op, status.status, attempts, form.message}, got, at)
	assert.Equal(t, form.body, string(refusal.Body), at)
	sentinel := status.sentinel
	if isDocumented := json.Valid([]byte(form.body)) && strings.Contains(form.body, `"result":`) &&
		form.message != ""; sentinel == gateway.ErrNotFound && !isDocumented {
		sentinel = nil // a page of somebody else says nothing about a record
	}
	assertSentinels(t, refusal, sentinel)
	for _, e := range []error{err, refusal} {
		assert.Equal(t, s.write && rejects, gateway.OutcomeOf(e) == rejected, at)
		assert.Equal(t, !s.write || !rejects, gateway.OutcomeOf(e) == unknown, at)
		assert.Equal(t, status.retried && (!s.write || rejects), gateway.SafeToRetry(e), at)
	}
}

// As JSON, a Response leaves out the parts that did not come.
func TestResponse_JSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(gateway.Response{StatusCode: 200})
	require.NoError(t, err)
	assert.NotRegexp(t, "Meta|Result|Skipped", string(text))
}

// Any status of 2xx is a success of a read, and JSON is read whatever its label. A Retry-After is ignored.
// I-9, I-26
func TestResponse_success(t *testing.T) {
	t.Parallel()
	forEach(t, "2xx", func(t *testing.T, s subject) {
		for _, status := range []int{200, 201, 202, 203, 206, 226, 299} {
			response := func(*http.Request) (*http.Response, error) {
				got := reply(status, s.body(), "Retry-After", "3600")
				got.Header.Set("Content-Type", "text/plain")
				return got, nil
			}
			got, err := s.call(t.Context(), newClient(t, "http://localhost", through(response)))
			assertInvariants(t, got, err)
			if s.write && status > 201 {
				assert.ErrorContains(t, decodeErrorOf(t, s, err), "only a status of 200 or 201 proves an invoice")
			} else {
				require.NoError(t, err)
			}
		}
		_, err := s.call(t.Context(), cannedClient(t, 204, ""))
		assert.ErrorContains(t, decodeErrorOf(t, s, err), "the body is empty")
	})
}

// An error keeps the beginning of a header, and no part of a character. A header need not be UTF-8, but a ContentType
// is.
func TestResponse_headersOfErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status        int
		header, value string
		kept          string
	}{
		{200, "Content-Type", "text/\xf0\xf0x", "text/\uFFFDx"},
		{200, "Content-Type", strings.Repeat("p", 300), strings.Repeat("p", 256)},
		{200, "Content-Type", "x" + strings.Repeat("\U0001F600", 100), "x" + strings.Repeat("\U0001F600", 63)},
		{404, "X-Request-Id", strings.Repeat("\x80", 2000), strings.Repeat("\x80", 1024)},
		{404, "X-Request-Id", strings.Repeat("p", 1023) + "\u00e9", strings.Repeat("p", 1023)},
	} {
		response := reply(tt.status, page)
		response.Header.Set(tt.header, tt.value)
		trip := func(*http.Request) (*http.Response, error) { return response, nil }
		_, err := withdrawalCall(t.Context(), newClient(t, "http://localhost", over(trip)))
		kept := ""
		switch err := err.(type) { //nolint:errorlint // the error itself
		case *gateway.APIError:
			kept = err.Header.Get(tt.header)
		case *gateway.DecodeError:
			kept = err.ContentType
		}
		assert.Equal(t, tt.kept, kept)
	}
}

// unending is a response without an end that counts the bytes that are read.
type unending struct {
	next, more string
	taken      int
}

func (e *unending) Read(p []byte) (int, error) {
	if e.next == "" {
		e.next = e.more
	}
	n := copy(p, e.next)
	e.next, e.taken = e.next[n:], e.taken+n
	return n, nil
}

// A response of exactly 8 MiB is read. No more than a byte more is taken of a larger one.
// I-162
func TestResponse_tooLarge(t *testing.T) {
	t.Parallel()
	const limit = 8 << 20
	assertTooLarge := func(t *testing.T, s subject, start, more string) {
		t.Helper()
		source := &unending{next: start, more: strings.Repeat(more, 1<<10)}
		transport := over(canned{status: s.status, body: func() io.Reader { return source }}.RoundTrip)
		got, err := s.call(t.Context(), cannedClient(t, 0, "", transport))
		assertInvariants(t, got, err)
		assert.LessOrEqual(t, source.taken, limit+1)
		if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok && s.write {
			err = lost.Cause
		}
		failure, ok := errors.AsType[*gateway.TransportError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, gateway.PhaseRead, failure.Phase)
		assert.ErrorIs(t, err, gateway.ErrResponseTooLarge)
		assert.False(t, gateway.SafeToRetry(err))
	}
	limited := subjectNamed("CoinNetworks")
	padded := limited.body() + strings.Repeat(" ", limit-len(limited.body()))
	_, err := limited.call(t.Context(), cannedClient(t, limited.status, padded))
	require.NoError(t, err)
	assertTooLarge(t, limited, padded, " ")
	assertTooLarge(t, subjectNamed("CreateInvoice"), `{"message":"`, "x")
	assertTooLarge(t, subjectNamed("Withdrawal"), `{"result":[`+pairJSON, ","+pairJSON)
	forEach(t, "an error without an end is cut at its own limit", func(t *testing.T, s subject) {
		source := &unending{more: "x"}
		transport := over(canned{status: 404, body: func() io.Reader { return source }}.RoundTrip)
		_, err := s.call(t.Context(), cannedClient(t, 0, "", transport))
		require.Error(t, err)
		assert.LessOrEqual(t, source.taken, 1<<20+1)
	})
}

// A read asks again for a body that was damaged on its way. An invoice is not sent again.
func TestResponse_damaged(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]error{
		"a corrupt stream": flate.CorruptInputError(1), "no header of gzip": gzip.ErrHeader,
		"another checksum": gzip.ErrChecksum,
	} {
		for _, s := range subjects() {
			inBubble(t, name+", "+s.name, func(t *testing.T) {
				trips := trips{brokenBody(s.status, "", fmt.Errorf("body: %w", damage)), statusTrip(s.status, s.body())}
				c := newClient(t, "http://localhost", over(func(req *http.Request) (*http.Response, error) {
					next := trips[0]
					trips = trips[1:]
					return next(req)
				}))
				got, err := s.call(t.Context(), c)
				assertInvariants(t, got, err)
				if assert.Equal(t, s.write, err != nil, "%v", err); s.write {
					assert.ErrorIs(t, decodeErrorOf(t, s, err), damage)
				}
				assert.Equal(t, s.write, len(trips) == 1)
			})
		}
	}
}

// A body is closed once, whatever the response, and with it the attempt is over:
// its context, and the timer in that, are not left behind.
func TestResponse_isClosedOnce(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		inBubble(t, s.name, func(t *testing.T) {
			for _, status := range []int{101, 200, 204, 302, 404, 503} {
				closed := 0
				var attempts []context.Context
				c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
					attempts = append(attempts, req.Context())
					response := reply(status, s.body())
					response.Body = closer{response.Body, func() { closed++ }}
					return response, nil
				}))
				_, _ = s.call(t.Context(), c)
				assert.Len(t, attempts, closed, "bodies closed after %d", status)
				for _, attempt := range attempts {
					assert.Error(t, attempt.Err(), "the attempt is over")
				}
			}
		})
	}
}
