package gateway_test

import (
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// Header values need not be UTF-8, and are cut all the same.
func TestHostile_headersThatAreNoUTF8(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, header, value string
		status              int
		body                string
	}{
		{"an identifier of continuation bytes with a refusal", "X-Request-Id", strings.Repeat("\x80", 2000), 404, refused("No.")},
		{"an identifier of the longest characters with a refusal", "X-Request-Id", "x" + strings.Repeat("\U0001F600", 500), 404, refused("No.")},
		{"an identifier that is cut inside of a character", "X-Request-Id", strings.Repeat("p", 1023) + "\u00e9", 404, refused("No.")},
		{"a content type of continuation bytes with a page", "Content-Type", strings.Repeat("\x80", 300), 200, "<html>"},
		{"a content type of first bytes with a page", "Content-Type", strings.Repeat("\xf0", 300), 200, "<html>"},
		{"a content type of the longest characters with a page", "Content-Type", "x" + strings.Repeat("\U0001F600", 100), 200, "<html>"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set(tt.header, tt.value)
				rw.WriteHeader(tt.status)
				_, _ = io.WriteString(rw, tt.body)
			})
			got, err := s.call(t.Context(), newClient(t, w.URL, once()))
			assertInvariants(t, got, err)
			require.Error(t, err)
			assertHeaderIsCut(t, s, tt.header, tt.value, err)
		})
	}
}

// assertHeaderIsCut asserts that an error keeps the beginning of a header.
func assertHeaderIsCut(t *testing.T, s subject, header, value string, err error) {
	t.Helper()
	kept, most := "", 256
	if refusal, ok := errors.AsType[*gateway.APIError](err); ok {
		kept, most = refusal.Header.Get(header), 1024
	} else {
		kept = decodeErrorOf(t, s, err).ContentType
	}
	assert.LessOrEqual(t, len(kept), most)
	assert.Greater(t, len(kept), most-4)
	assert.True(t, strings.HasPrefix(value, kept), "%q", kept)
	next, _ := strings.CutPrefix(value, kept)
	if strings.ToValidUTF8(value, "") == value {
		assert.Equal(t, kept, strings.ToValidUTF8(kept, ""), "a character is not cut: %.8q", next)
	}
}

// A result of which the shape is not documented costs what it weighs. This
// test is not parallel, because it measures.
func TestHostile_memoryIsLinear(t *testing.T) {
	members := make([]string, 1000)
	for i := range members {
		members[i] = fmt.Sprintf(`"%d":1`, i)
	}
	record := "{" + strings.Join(members, ",") + "}"
	name := strings.Repeat("n", 256<<10)
	ones := "[" + strings.Repeat("1,", 512<<10) + "1]"
	for _, tt := range []struct {
		name, result, pointer string
	}{
		{"a long name with many members under it", `{"` + name + `":` + record + `}`, ""},
		{"a long name with many elements under it", `{"` + name + `":` + ones + `}`, ""},
		{"many numbers where records are expected", ones, "/result/0"},
		{"rates by long names", `{"usd":{"` + name + `":` + record + `},"eur":{}}`, ""},
		{"many records without an amount", "[" + strings.Repeat("{},", 256<<10) + "{}]", "/result/0"},
	} {
		for _, s := range []subject{subjectNamed("ExchangeRates"), subjectNamed("Balance")} {
			got := allocated(t, s, enveloped(tt.result))
			assert.Less(t, got, uint64(40<<20), "%s: %s allocates %d bytes", tt.name, s.name, got)
			result, err := s.call(t.Context(), cannedClient(t, 200, enveloped(tt.result)))
			assertInvariants(t, result, err)
			require.Error(t, err, tt.name)
			assert.Less(t, len(err.Error()), 4<<10, tt.name)
			if tt.pointer != "" {
				assert.Equal(t, tt.pointer, decodeErrorOf(t, s, err).Pointer, tt.name)
			}
		}
	}
}

const password = "hunter2-and-more"

// net/http quotes an answer that is no HTTP whole. What is made of its words
// costs what they weigh. This test is not parallel, because it measures.
func TestHostile_answersThatAreQuoted(t *testing.T) {
	many := strings.Repeat("://", 80_000)
	account := "http://user:" + password + "@host/ "
	for name, answer := range map[string]string{
		"many URLs for a length":              "HTTP/1.1 200 OK\r\nContent-Length: " + many + "\r\n\r\n",
		"many URLs for a status":              "HTTP/1.1 " + many + "\r\n\r\n",
		"many URLs for a protocol":            many + " 200 OK\r\n\r\n",
		"a password and many URLs":            "HTTP/1.1 200 OK\r\nContent-Length: " + account + many + "\r\n\r\n",
		"a password and many URLs, as status": "HTTP/1.1 " + account + many + "\r\n\r\n",
		"many passwords":                      "HTTP/1.1 " + strings.Repeat(account, 5000) + "\r\n\r\n",
	} {
		w := serve(t, rawAnswer(answer))
		for _, s := range []subject{subjectNamed("Withdrawal"), subjectNamed("CreateInvoice")} {
			var err error
			got := weighed(func() { _, err = s.call(t.Context(), newClient(t, w.URL, once())) })
			assert.Less(t, got, uint64(8<<20), "%s: %s allocates %d bytes", name, s.name, got)
			assertInvariants(t, nil, err)
			require.Error(t, err, name)
			assert.Less(t, len(err.Error()), 4<<10, name)
			assertSilent(t, err, password)
		}
	}
}

// rawAnswer answers with bytes that need not be HTTP.
func rawAnswer(answer string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, answer)
	}
}

// Wherever a password stands in the words of a transport, it is not shown.
func TestHostile_passwordsInErrors(t *testing.T) {
	t.Parallel()
	account := "http://user:" + password + "@proxy:3128"
	for name, text := range map[string]string{
		"in a proxy's address that is bad": `invalid proxy address "http://user:` + password[:2] + "/" + password + `%zz@proxy:3128"`,
		"in a proxy's address that is bad, wrapped": `proxyconnect: invalid proxy address "` + password +
			`://u:p@h": parse "` + password + `": bad`,
		"in a URL":                    "can not reach " + account,
		"in the last of many URLs":    strings.Repeat("http://host/ ", 40) + account,
		"in each of many URLs":        strings.Repeat(account+" ", 5000),
		"with an @ in it":             "http://user:@" + password + "@" + password + "@proxy:3128",
		"after many empty URLs":       strings.Repeat("://", 80_000) + account,
		"after a few empty URLs":      strings.Repeat("://", 8) + account,
		"across the cut of the text":  strings.Repeat("p", 1024-len("http://user:")-len(password)+4) + account,
		"just before the cut":         strings.Repeat("p", 1024-len("http://user:")-len(password)) + account,
		"with the @ just at the cut":  strings.Repeat("p", 1024-len("http://user:")-len(password)-1) + account,
		"with the cut at its user":    strings.Repeat("p", 1024-len("http://user:")) + account,
		"in a bad address at the cut": strings.Repeat("p", 1024-30) + `invalid proxy address "` + account + `"`,
	} {
		forEach(t, name, func(t *testing.T, s subject) {
			c := newClient(t, "https://gateway.example", once(), through(func(*http.Request) (*http.Response, error) {
				return nil, errors.New(text)
			}))
			got, err := s.call(t.Context(), c)
			assertInvariants(t, got, err)
			assert.Less(t, len(err.Error()), 4<<10)
			assertSilent(t, err, password[:6])
		})
	}
}

const (
	merchantA = "MERCHANT-A-0c1d2e3f4a5b"
	merchantB = "MERCHANT-B-9a8b7c6d5e4f"
)

// Two merchants may number their orders alike, and their invoices have nothing
// to do with each other.
func TestHostile_ordersOfTwoMerchants(t *testing.T) {
	t.Parallel()
	const cut, good, held = "cut", "good", "held"
	type step struct{ key, what string }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"a success of one does not free the order of the other", []step{{merchantA, cut}, {merchantB, good}, {merchantA, held}}},
		{"an unknown outcome of one does not hold the order of the other", []step{{merchantA, cut}, {merchantB, good}, {merchantB, good}}},
		{"the client's own key is a third", []step{{"", cut}, {merchantA, good}, {merchantB, good}, {"", held}}},
		{"an unknown outcome of another does not hold the client's own order", []step{{merchantA, cut}, {"", good}, {merchantA, held}}},
		{"each holds its own", []step{{merchantA, cut}, {merchantB, cut}, {"", cut}, {merchantA, held}, {merchantB, held}, {"", held}}},
		{"the client's own key, given for a call, is the client's own", []step{{"", cut}, {canary, held}}},
		{"and the other way round", []step{{canary, cut}, {"", held}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			what := ""
			c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
				if what == good {
					return reply(200, enveloped(invoiceJSON)), nil
				}
				assert.NotEqual(t, held, what, "this invoice must not be sent")
				return nil, errors.New(cut)
			}))
			wants := map[string]error{cut: gateway.ErrOutcomeUnknown, held: gateway.ErrOrderOutcomeUnknown}
			for i, s := range tt.steps {
				what = s.what
				_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(s.key)...)
				assert.ErrorIs(t, err, wants[what], "step %d", i)
			}
		})
	}
}

func keyOption(key string) []gateway.CallOption {
	if key == "" {
		return nil
	}
	return []gateway.CallOption{gateway.WithAPIKey(key)}
}

// Nor does an invoice of one merchant wait for that of another.
func TestHostile_ordersOfTwoMerchantsAtOnce(t *testing.T) {
	t.Parallel()
	var c *gateway.Client
	keys := []string{merchantB, ""}
	c = newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
		if len(keys) > 0 {
			key := keys[0]
			keys = keys[1:]
			_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(key)...)
			assert.NoError(t, err)
			_, err = c.CreateInvoice(t.Context(), order("A-17"), keyOption(merchantA)...)
			assert.ErrorIs(t, err, gateway.ErrOrderInFlight, "its own is under way")
		}
		return reply(200, enveloped(invoiceJSON)), nil
	}))
	_, err := c.CreateInvoice(t.Context(), order("A-17"), keyOption(merchantA)...)
	assert.NoError(t, err)
	assert.Empty(t, keys)
}

// With another key for a call both keys are looked for in the answer.
func TestHostile_bothKeysAreTakenOut(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{
		"two keys that share nothing":                  merchantA,
		"a key that begins with the client's":          canary + "-and-more",
		"a key that the client's begins with":          canary[:12],
		"a key that ends with the client's":            "and-" + canary,
		"a key with the characters that JSON escapes ": `a/b"c\d/e"f\g`,
	} {
		for _, status := range []int{200, 400, 500} {
			forEach(t, fmt.Sprintf("%s, %d", name, status), func(t *testing.T, s subject) {
				w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("X-Request-Id", canary+" "+other)
					rw.Header().Set("Server", other+" "+canary)
					quoted := quotedJSON(canary + " and " + other)
					answer(status, `{"message":`+quoted+`,"result":[`+quoted+`],"meta":{"a":`+quoted+`}}`)(rw, r)
				})
				var response gateway.Response
				c := newClient(t, w.URL, once(), gateway.WithOrderGuard(nil))
				got, err := s.call(t.Context(), c, gateway.WithAPIKey(other), gateway.WithResponse(&response))
				assertInvariants(t, got, err)
				for _, key := range []string{canary, other} {
					for _, v := range []any{got, err, response, response.Meta, response.Result} {
						assertSilent(t, v, key)
						assert.NotContains(t, unescaped(dumped(v)), unescaped(key))
					}
				}
				assert.Equal(t, "[REDACTED] and [REDACTED]", response.Message)
				assert.Equal(t, "[REDACTED] [REDACTED]", response.Header.Get("X-Request-Id"))
				assertBothGone(t, err)
			})
		}
	}
}

// assertBothGone asserts what a refusal says where two keys stood.
func assertBothGone(t *testing.T, err error) {
	t.Helper()
	lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
	if ok {
		err = lost.Cause
	}
	if refusal, ok := errors.AsType[*gateway.APIError](err); ok {
		assert.Equal(t, "[REDACTED] and [REDACTED]", refusal.Message)
		assert.Equal(t, "[REDACTED] [REDACTED]", refusal.Header.Get("Server"))
		assert.Equal(t, 6, strings.Count(string(refusal.Body), "[REDACTED]"), "%s", refusal.Body)
	}
}

// unescaped is a text without the backslashes that escapes add.
func unescaped(text string) string { return strings.ReplaceAll(text, `\`, "") }

func quotedJSON(text string) string {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return string(quoted)
}

// slashed is a key that JSON may escape.
const slashed = `ab/cdef+GH/ijkl"mn\opq/rs==`

// A service that logs its requests says them back as JSON in a text of JSON,
// and so the key is escaped more than once.
func TestHostile_keysThatAreEscapedTwice(t *testing.T) {
	t.Parallel()
	slashes := func(text string) string { return strings.ReplaceAll(text, "/", `\/`) }
	unicodes := func(text string) string { return strings.ReplaceAll(text, "/", `\u002f`) }
	plain := func(text string) string { return text }
	for name, escape := range map[string]func(string) string{
		"plain slashes": plain, "escaped slashes": slashes, "slashes by their code": unicodes,
	} {
		said := `"bad: ` + slashed + `"`
		for level := range 4 {
			if level > 0 {
				said = quotedJSON(`{"apiKey":` + said + `}`)
			} else {
				said = quotedJSON(slashed)
			}
			said = escape(said)
			for _, status := range []int{200, 400, 500} {
				assertNoSlashedKey(t, fmt.Sprintf("%s, level %d, %d", name, level, status), said, status)
			}
		}
	}
}

func assertNoSlashedKey(t *testing.T, name, said string, status int) {
	t.Helper()
	forEach(t, name, func(t *testing.T, s subject) {
		for _, body := range []string{
			`{"message":` + said + `,"result":[],"meta":{}}`,
			`{"message":"m","result":[],"meta":{"request":` + said + `}}`,
			`{"message":"m","result":{"request":` + said + `},"meta":{}}`,
			`{"message":"m","result":{` + said + `:1},"meta":{}}`,
			`<html>` + said,
		} {
			var response gateway.Response
			c, err := gateway.New("http://localhost", slashed, once(), gateway.WithOrderGuard(nil),
				through(func(*http.Request) (*http.Response, error) {
					return reply(status, body, "X-Request-Id", said), nil
				}))
			require.NoError(t, err)
			got, err := s.call(t.Context(), c, gateway.WithResponse(&response))
			for _, v := range []any{got, err, response} {
				for _, text := range []string{dumped(v), fmt.Sprintf("%+v", v)} {
					text = strings.ReplaceAll(text, "u002f", "/")
					assert.NotContains(t, unescaped(text), unescaped(slashed), body)
				}
			}
		}
	})
}

// Why an outcome is unknown is for a person to read. A program that asks the
// cause whether it may repeat the call is told no.
func TestHostile_causesAreNotRepeated(t *testing.T) {
	t.Parallel()
	trips := map[string]tripper{
		"a name server that did not answer, after reading": readThen(temporaryError{}),
		"a connection that was refused, after reading":     readThen(refusedConnection("connect")),
		"an end":                 readThen(io.EOF),
		"an end in the middle":   readThen(io.ErrUnexpectedEOF),
		"a timeout":              readThen(context.DeadlineExceeded),
		"an attempt's timeout":   hangAfterReading,
		"a redirect":             statusTrip(302, "", "Location", "/"),
		"a status of no answer":  statusTrip(101, ""),
		"a page":                 statusTrip(200, "<html>"),
		"a body that is cut":     statusTrip(200, `{"message":`),
		"a refusal with success": statusTrip(200, refused("No.")),
		"a body that breaks off": func(req *http.Request) (*http.Response, error) {
			drain(req)
			got := reply(200, "")
			got.Body = io.NopCloser(brokenReader{io.ErrUnexpectedEOF})
			return got, nil
		},
	}
	for _, status := range statuses {
		if !status.rejects {
			trips[fmt.Sprint("a status of ", status.status)] = statusTrip(status.status, refused("No."), "Retry-After", "1")
		}
	}
	trips["a body that is not what it is labelled as"] = func(req *http.Request) (*http.Response, error) {
		drain(req)
		got := reply(200, "")
		got.Body = io.NopCloser(brokenReader{fmt.Errorf("gzip: %w", flate.CorruptInputError(1))})
		return got, nil
	}
	for name, trip := range trips {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: trip}))
				_, err := c.CreateInvoice(t.Context(), order("A-17"))
				lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
				require.True(t, ok, "%v", err)
				for _, e := range []error{err, lost.Cause, fmt.Errorf("shop: %w", lost.Cause), errors.Join(io.EOF, lost.Cause)} {
					assert.False(t, gateway.SafeToRetry(e), "%v", e)
				}
				assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(lost.Cause))
			})
		})
	}
}

// Nothing that a service names a member forges a line of a log.
func TestHostile_namesInErrors(t *testing.T) {
	t.Parallel()
	for name, member := range map[string]string{
		"a line end":              "a\nlevel=INFO msg=paid",
		"a terminal's escape":     "a\x1b[2Jb",
		"both":                    "a\r\n\x1b]0;title\a",
		"a line end of Unicode":   "a\u2028b\u0085c",
		"another writing order":   "a\u202eb",
		"a character without use": "a\x00b\x7fc",
	} {
		for where, result := range map[string]string{
			"of a bad value":        `{` + quotedJSON(member) + `:nope}`,
			"of bad amounts":        `{` + quotedJSON(member) + `:{"usd":"x","eur":"1","balance":"x"}}`,
			"above a bad value":     `{` + quotedJSON(member) + `:{"deep":nope}}`,
			"as a coin of an array": `[{"symbol":` + quotedJSON(member) + `,"usd":"x","eur":"1","balance":"x"}]`,
		} {
			forEach(t, name+" in the name "+where, func(t *testing.T, s subject) {
				got, err := s.call(t.Context(), cannedClient(t, s.status, enveloped(result)))
				if err == nil {
					return // an invoice may be anything
				}
				assertInvariants(t, got, err)
				for _, e := range []error{err, decodeErrorOf(t, s, err)} {
					for _, char := range e.Error() {
						assert.True(t, unicode.IsPrint(char), "%q in %q", char, e.Error())
					}
				}
			})
		}
	}
}

// What a Response holds is of one answer, the last.
func TestHostile_responseIsOfTheLastAnswer(t *testing.T) {
	t.Parallel()
	cutAnswer := func() (*http.Response, error) {
		whole := `{"message":"first","meta":{"first":1},"result":` + withdrawalJSON + `,`
		got := reply(201, whole, "X-First", "1")
		got.Body = io.NopCloser(io.MultiReader(strings.NewReader(whole), brokenReader{io.ErrUnexpectedEOF}))
		return got, nil
	}
	for _, tt := range []struct {
		name    string
		second  func() (*http.Response, error)
		status  int
		message string
		result  string
	}{
		{"a refusal", saysStatus(404), 404, "No.", "[]"},
		{"a page", func() (*http.Response, error) { return reply(404, "<html>"), nil }, 404, "", ""},
		{"nothing", func() (*http.Response, error) { return reply(501, ""), nil }, 501, "", ""},
		{"a refusal until the last attempt", saysStatus(503), 503, "No.", "[]"},
		{"a page until the last attempt", func() (*http.Response, error) { return reply(503, "<html>"), nil }, 503, "", ""},
		{"a redirect", func() (*http.Response, error) { return reply(302, ""), nil }, 302, "", ""},
		{"a good answer", saysGood, 201, "Operation was successful.", withdrawalJSON},
		{"an answer without a result", func() (*http.Response, error) { return reply(201, `{"message":"m"}`), nil }, 201, "m", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				response := gateway.Response{StatusCode: 1, Message: "old", Result: jsontext.Value("1")}
				p := paced(t, gateway.RetryPolicy{}, cutAnswer, tt.second)
				_, _ = p.client.Withdrawal(t.Context(), requestID, gateway.WithResponse(&response))
				assert.Equal(t, tt.status, response.StatusCode)
				assert.Equal(t, tt.message, response.Message)
				assert.Equal(t, tt.result, string(response.Result))
				assert.NotContains(t, string(response.Meta), "first")
				assert.NotContains(t, response.Header, "X-First")
				assert.Equal(t, len(p.at), response.Attempts)
			})
		})
	}
}

// A Response that is used again holds nothing of the call before, also when
// nothing comes of the call.
func TestHostile_responseIsReset(t *testing.T) {
	t.Parallel()
	var none context.Context
	bad := gateway.WithHeader("x-api-key", "a")
	for _, tt := range []struct {
		name string
		ctx  context.Context
		opts func(with gateway.CallOption) []gateway.CallOption
	}{
		{"no context", none, func(with gateway.CallOption) []gateway.CallOption { return []gateway.CallOption{with} }},
		{"an option before it is refused", t.Context(), func(with gateway.CallOption) []gateway.CallOption {
			return []gateway.CallOption{bad, with}
		}},
		{"an option after it is refused", t.Context(), func(with gateway.CallOption) []gateway.CallOption {
			return []gateway.CallOption{with, bad}
		}},
		{"an option before it is nil", t.Context(), func(with gateway.CallOption) []gateway.CallOption {
			return []gateway.CallOption{nil, with}
		}},
		{"no context, and an option before it is refused", none, func(with gateway.CallOption) []gateway.CallOption {
			return []gateway.CallOption{bad, with}
		}},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9, Result: jsontext.Value("1")}
			got, err := s.call(tt.ctx, cannedClient(t, s.status, s.body()), tt.opts(gateway.WithResponse(&response))...)
			assertInvariants(t, got, err)
			require.ErrorIs(t, err, gateway.ErrInvalidArgument)
			assert.Equal(t, gateway.Response{}, response)
		})
	}
}

var errOfTheGuard = errors.New("of the guard")

// Whatever a guard refuses with, this call sent nothing, and matches nothing
// that is true of another call only.
func TestHostile_errorsOfAGuard(t *testing.T) {
	t.Parallel()
	address := "postgres://shop:" + password + "@db:5432/orders: refused"
	previous := &gateway.OutcomeUnknownError{Op: "create_invoice", OrderID: "A-17", Cause: io.EOF}
	refusal := []error{gateway.ErrInvalidArgument, gateway.ErrNotSent}
	for _, tt := range []struct {
		name string
		err  error
		want []error
	}{
		{"an unknown outcome", gateway.ErrOutcomeUnknown, nil},
		{"a limit", gateway.ErrRateLimited, nil},
		{"a timeout", gateway.ErrTimeout, nil},
		{"every sentinel but those of orders", errors.Join(sentinels[:14]...), nil},
		{"an answer of the service", &gateway.APIError{Op: "create_invoice", StatusCode: 429}, nil},
		{"an answer of the service that says no", &gateway.APIError{Op: "create_invoice", StatusCode: 500}, nil},
		{"a previous call's unknown outcome", previous, nil},
		{"a database's address", errors.New(address), nil},
		{"an order that is in flight", fmt.Errorf("%w: %s", gateway.ErrOrderInFlight, address), append(refusal, gateway.ErrOrderInFlight)},
		{
			"an order that is unknown, and the previous error",
			fmt.Errorf("%w: %w: %s", gateway.ErrOrderOutcomeUnknown, previous, address),
			append(refusal, gateway.ErrOrderOutcomeUnknown),
		},
		{
			"an order that is in flight, and a limit",
			errors.Join(gateway.ErrRateLimited, gateway.ErrOrderInFlight, previous),
			append(refusal, gateway.ErrOrderInFlight),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, answer(200, enveloped(invoiceJSON)))
			n := &notary{refuse: fmt.Errorf("%w: %w: %w", tt.err, errOfTheGuard, &databaseError{address})}
			got, err := newClient(t, w.URL, gateway.WithOrderGuard(n)).CreateInvoice(t.Context(), order("A-17"))
			assertInvariants(t, got, err)
			assertSentinels(t, err, append([]error{gateway.ErrNotSent}, tt.want...)...)
			assertGuardRefused(t, err)
			assert.Empty(t, n.ended)
			assert.Empty(t, w.Requests())
		})
	}
}

func assertGuardRefused(t *testing.T, err error) {
	t.Helper()
	assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
	assert.False(t, gateway.SafeToRetry(err))
	assert.ErrorIs(t, err, errOfTheGuard)
	_, isDatabase := errors.AsType[*databaseError](err)
	assert.True(t, isDatabase, "what the guard says is kept")
	_, isAnswer := errors.AsType[*gateway.APIError](err)
	assert.False(t, isAnswer)
	_, isUnknown := errors.AsType[*gateway.OutcomeUnknownError](err)
	assert.False(t, isUnknown)
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		assert.NotContains(t, inner.Error(), password)
	}
	assertSilent(t, err, password)
}

// A requestError is an error that holds the request, as some transports
// return.
type requestError struct {
	Request *http.Request
	Header  http.Header
	Text    string
}

func (e *requestError) Error() string { return "can not send " + e.Text }

// A transport's error may hold the request. It is found, and not shown.
func TestHostile_errorsThatHoldTheRequest(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(error) error{
		"as it is":       func(err error) error { return err },
		"wrapped":        func(err error) error { return fmt.Errorf("pool: %w", err) },
		"joined":         func(err error) error { return errors.Join(io.ErrUnexpectedEOF, err) },
		"with the key":   func(err error) error { return fmt.Errorf("%s: %w", canary, err) },
		"with a timeout": func(err error) error { return errors.Join(timeoutError{canary}, err) },
	} {
		forEach(t, name, func(t *testing.T, s subject) {
			c := newClient(t, "https://gateway.example", once(), gateway.WithAPIKeyOnPublicCalls(),
				gateway.WithHTTPClient(&http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
					body := ""
					if req.Body != nil {
						read, _ := io.ReadAll(req.Body)
						body = string(read)
					}
					return nil, wrap(&requestError{req, http.Header{"X-Api-Key": {canary}}, body})
				})}))
			got, err := s.call(t.Context(), c)
			assertInvariants(t, got, err)
			assertSilent(t, err, canary)
			found := err
			if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
				assert.True(t, s.write)
				found = lost.Cause
			}
			for inner := found; inner != nil; inner = errors.Unwrap(inner) {
				assertSilent(t, inner, canary)
			}
			held, ok := errors.AsType[*requestError](found)
			require.True(t, ok, "the transport's error is found")
			assert.Equal(t, canary, held.Header.Get("X-Api-Key"), "it is the transport's own")
			_, err = json.Marshal(found)
			assert.NoError(t, err, "it can be logged as JSON")
		})
	}
}

type timeoutError struct{ text string }

func (e timeoutError) Error() string { return "no answer: " + e.text }
func (timeoutError) Timeout() bool   { return true }

// That the words of a timeout are cleaned leaves it a timeout.
func TestHostile_cleanedTimeouts(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"with the key":           timeoutError{canary},
		"with a password":        timeoutError{"http://user:" + password + "@proxy"},
		"with neither":           timeoutError{"of the wire"},
		"of many lines":          timeoutError{"a\nb"},
		"too long":               timeoutError{strings.Repeat("p", 8<<10)},
		"wrapped, with the key":  fmt.Errorf("%s: %w", canary, timeoutError{}),
		"of a context, with it":  fmt.Errorf("%s: %w", canary, context.DeadlineExceeded),
		"with an error of ours":  errors.Join(gateway.ErrNotSent, timeoutError{canary}),
		"with an answer of ours": errors.Join(&gateway.APIError{StatusCode: 400}, timeoutError{canary}),
	} {
		forEach(t, name, func(t *testing.T, s subject) {
			for _, trip := range []tripper{readThen(cause), func(req *http.Request) (*http.Response, error) {
				drain(req)
				got := reply(s.status, "")
				got.Body = io.NopCloser(brokenReader{cause})
				return got, nil
			}} {
				c := newClient(t, "http://localhost", once(), gateway.WithOrderGuard(nil), gateway.WithHTTPClient(&http.Client{Transport: trip}))
				got, err := s.call(t.Context(), c)
				assertInvariants(t, got, err)
				assertSilent(t, err, canary)
				assertSilent(t, err, password)
				assertTimedOut(t, s, err)
			}
		})
	}
}

// assertTimedOut asserts that a read timed out, and that of an invoice this is
// the cause of its unknown outcome only.
func assertTimedOut(t *testing.T, s subject, err error) {
	t.Helper()
	if s.write {
		assertSentinels(t, err, gateway.ErrOutcomeUnknown)
		lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err)
		require.True(t, ok)
		err = lost.Cause
	}
	assertSentinels(t, err, gateway.ErrTimeout)
	failure, ok := errors.AsType[*gateway.TransportError](err)
	require.True(t, ok)
	assert.True(t, failure.Timeout())
}

// Intervals that can not be added up are refused.
func TestHostile_longIntervals(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]gateway.WaitOptions{
		"the longest least interval":       {MinInterval: math.MaxInt64},
		"the longest interval":             {MaxInterval: math.MaxInt64},
		"both":                             {MinInterval: math.MaxInt64, MaxInterval: math.MaxInt64},
		"from the shortest to the longest": {MinInterval: 1, MaxInterval: math.MaxInt64},
		"one that overflows by a half":     {MinInterval: math.MaxInt64 / 3 * 2, MaxInterval: math.MaxInt64},
		"a little over a day":              {MaxInterval: 24*time.Hour + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
					if sent++; sent > 2 {
						return withdrawalIn("COMPLETED")()
					}
					return withdrawalIn("PENDING")()
				}))
				got, err := c.WaitWithdrawal(t.Context(), requestID, w)
				assertInvariants(t, got, err)
				assertRefused(t, err, "withdrawal", "w", "")
				assert.Zero(t, sent)
			})
		})
	}
}

// A rate that is made by hand can be of any size. One that would take for ever
// to write out is refused by its exponent.
func TestHostile_ratesMadeByHand(t *testing.T) {
	t.Parallel()
	one := decimal.RequireFromString("1")
	for name, rate := range map[string]decimal.Decimal{
		"a huge exponent":         decimal.New(1, 2_000_000_000),
		"a huge scale":            decimal.New(1, -2_000_000_000),
		"the largest exponent":    decimal.New(1, math.MaxInt32),
		"the largest scale":       decimal.New(1, math.MinInt32),
		"a huge negative":         decimal.New(-1, 2_000_000_000),
		"zero of a huge exponent": decimal.New(0, 2_000_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rates := &gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "BTC", USD: rate, EUR: rate}}}
			for _, fiat := range []string{"usd", "eur"} {
				got, err := rates.ToCoin(one, fiat, "BTC", 8)
				assert.True(t, got.IsZero())
				assertRefused(t, err, "to_coin", "rate", "")
				got, err = rates.ToFiat(one, "BTC", fiat)
				assert.True(t, got.IsZero())
				assertRefused(t, err, "to_fiat", "rate", "")
			}
		})
	}
}

// Values that nobody made but by hand do no harm.
func TestHostile_valuesMadeByHand(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"half a character":              `{"a":"\ud800"}`,
		"half a character in the name":  `{"\ud800":"x","a":"b"}`,
		"no UTF-8":                      "{\"a\":\"\x80\"}",
		"a number that is none":         `{"a":-}`,
		"a text that does not end":      `{"a":"x`,
		"a value that is not there":     `{"a"`,
		"nothing":                       "",
		"a text":                        `"a"`,
		"a name that is no text":        `{1:2}`,
		"an end without a beginning":    `}`,
		"an escape that does not exist": `{"a":"\x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, ok := (&gateway.Invoice{Raw: jsontext.Value(raw)}).Text("a")
			assert.False(t, ok)
			assert.Empty(t, text)
		})
	}
	for _, err := range []error{
		&gateway.ArgumentError{}, &gateway.APIError{}, &gateway.DecodeError{}, &gateway.TransportError{},
		&gateway.OutcomeUnknownError{}, &gateway.WithdrawalFailedError{}, &gateway.WaitError{}, &gateway.LimitError{},
	} {
		t.Run(fmt.Sprintf("a zero %T", err), func(t *testing.T) {
			t.Parallel()
			assertInvariants(t, nil, err)
			assert.False(t, gateway.SafeToRetry(err))
			assert.NotEqual(t, gateway.OutcomeSucceeded, gateway.OutcomeOf(err))
		})
	}
}
