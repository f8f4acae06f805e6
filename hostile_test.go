package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/faultserver"
	"github.com/cryptogw/gateway/internal/strictjson"
)

// Header values need not be UTF-8, and are truncated all the same.
func TestHostile_HeadersThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, header, value string
		status              int
		body                string
	}{
		{"an identifier of continuation bytes with a refusal", "X-Request-Id", strings.Repeat("\x80", 2000), 404, refused("No.")},
		{"an identifier of the longest characters with a refusal", "X-Request-Id", "x" + strings.Repeat("\U0001F600", 500), 404, refused("No.")},
		{"an identifier that is truncated inside of a character", "X-Request-Id", strings.Repeat("p", 1023) + "\u00e9", 404, refused("No.")},
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
			assertHeaderIsTruncated(t, s, tt.header, tt.value, err)
		})
	}
}

// assertHeaderIsTruncated asserts that an error keeps the beginning of a header.
func assertHeaderIsTruncated(t *testing.T, s subject, header, value string, err error) {
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
		assert.Equal(t, kept, strings.ToValidUTF8(kept, ""), "a character is not truncated: %.8q", next)
	}
}

// A result of which the shape is not documented costs memory in proportion to
// its size. This test is not parallel, because it measures.
func TestHostile_MemoryIsLinear(t *testing.T) {
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
		{"many numbers where records are expected", ones, "/result"},
		{"rates by long names", `{"usd":{"` + name + `":` + record + `},"eur":{}}`, ""},
		{"many records without an amount", "[" + strings.Repeat("{},", 256<<10) + "{}]", "/result"},
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

// wide returns results of so many members or elements, at all depths together, in the
// shapes that are accepted. The amount of coin i is amount(i), its name name(i).
func wide(entries int, name, amount func(i int) string) map[string][]string {
	list := func(begin, format, end string, each int) string {
		var all strings.Builder
		for i := range entries / each {
			all.WriteByte(',')
			for _, b := range []byte(format) {
				switch b {
				case '1':
					all.WriteString(amount(i))
				case '2':
					all.WriteString(amount(i + 1))
				case 'N':
					all.WriteString(name(i))
				default:
					all.WriteByte(b)
				}
			}
		}
		return begin + strings.TrimPrefix(all.String(), ",") + end
	}
	half := list(`{`, `"N":1`, `}`, 2)
	return map[string][]string{
		"Balance": {
			list(`{`, `"N":1`, `}`, 1), list(`{`, `"N":{"amount":1}`, `}`, 2),
			list(`[`, `{"amount":1}`, `]`, 2), list(`[`, `{"coin":"N","amount":1}`, `]`, 3),
		},
		"ExchangeRates": {
			list(`{`, `"N":{"usd":1,"eur":2}`, `}`, 3), list(`[`, `{"coin":"N","usd":1,"eur":2}`, `]`, 4),
			list(`[`, `{"coin":"N","usd":1}`, `]`, 3), list(`[{"coin":"A","usd":1},`, `{"coin":"N"}`, `]`, 2),
			`{"usd":` + half + `,"eur":` + half + `}`, `{"usd":` + list(`{`, `"N":1`, `}`, 1) + `,"eur":{}}`,
		},
		"CreateInvoice": {list(`{`, `"N":1`, `}`, 1), list(`[`, `1`, `]`, 1), list(`[`, `{"N":1}`, `]`, 2)},
	}
}

// shortName returns one of the shortest names for an index.
func shortName(i int) string {
	const letters = "ABCDEFGHIJKLMOPQRSTUVWXYZ03456789!#$%&'()*+-./;<=>?@^_`|~abcdefghijklmnopqrstuvwxyz"
	name := letters[i%len(letters)]
	if i < len(letters) {
		return string(name)
	}
	return string(name) + shortName(i/len(letters)-1)
}

// row H6: what a result of an undocumented shape costs is bounded by its text and by how
// many entries it has. This test is not parallel, because it measures.
func TestHostile_Cost(t *testing.T) {
	const mostTimes, mostEach = 14, 320 // SECURITY.md has these figures
	for _, tt := range []struct {
		name         string
		entries      int
		coin, amount func(int) string
	}{
		{"the shortest", 99_990, shortName, func(int) string { return "1" }},
		{"names with escapes", 99_990, func(i int) string { return `\u0041` + shortName(i) }, strconv.Itoa},
		{"without an amount", 99_990, shortName, func(int) string { return "{}" }},
		{"too many", 200_000, func(i int) string { return fmt.Sprintf("%05x", i) }, func(int) string { return "1" }},
	} {
		if slack() > 1 && tt.entries < strictjson.MaxEntries {
			tt.entries /= 10 // the race detector is slow
		}
		for method, results := range wide(tt.entries, tt.coin, tt.amount) {
			for _, result := range results {
				s, body := subjectNamed(method), enveloped(result)
				c := cannedClient(t, s.status, body, gateway.WithOrderGuard(nil), gateway.WithObserver(gateway.NopObserver{}), once())
				var err error
				cost := bytesAllocated(func() { _, err = s.call(t.Context(), c) })
				most := mostTimes*len(body) + mostEach*min(tt.entries, strictjson.MaxEntries)
				assert.Less(t, cost, uint64(slack())*uint64(most), "%s, %s, %.40s: %.100v", method, tt.name, result, err)
				if tt.entries > strictjson.MaxEntries {
					assert.ErrorContains(t, causeOf(err), "/result: has more than 100000 members and elements", "%.40s", result)
				}
			}
		}
	}
}

// A text in escapes, and one with the key, cost more than others. This test is not
// parallel, because it measures.
func TestHostile_CostOfTexts(t *testing.T) {
	const size = 2 << 20
	for name, tt := range map[string]struct {
		text      string
		mostTimes int // SECURITY.md has these figures
	}{
		"in escapes":   {strings.Repeat(`\u0041`, size/len(`\u0041`)), 14},
		"with the key": {canary + strings.Repeat("a", size), 3 * 14},
	} {
		body := enveloped(`["` + tt.text + `"]`)
		for _, method := range []string{"Balance", "ExchangeRates", "CreateInvoice"} {
			s := subjectNamed(method)
			c := cannedClient(t, s.status, body, gateway.WithOrderGuard(nil), once())
			cost := bytesAllocated(func() { _, _ = s.call(t.Context(), c) })
			assert.Less(t, cost, uint64(slack())*uint64(tt.mostTimes*len(body)), "%s: a text %s", method, name)
		}
	}
}

// causeOf is the cause of an unknown outcome, or any other error itself.
func causeOf(err error) error {
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		return unknown.Cause
	}
	return err
}

// An endingContext ends when it was asked so often, without telling anybody.
type endingContext struct {
	context.Context
	asked atomic.Int64
	last  int64
}

func (c *endingContext) Err() error {
	if c.asked.Add(1) > c.last {
		return context.Canceled
	}
	return nil
}

// row H6: the end of the context is noticed while a result is read that has already come,
// and while it is converted.
func TestHostile_ContextEndsInAResult(t *testing.T) {
	t.Parallel()
	for method, results := range wide(50_000, shortName, strconv.Itoa) {
		for _, result := range results {
			s := subjectNamed(method)
			call := func(last int64) (asked int64, got any, err error) {
				ctx := &endingContext{Context: context.Background(), last: last}
				got, err = s.call(ctx, cannedClient(t, s.status, enveloped(result), once()))
				return ctx.asked.Load(), got, err
			}
			all, _, err := call(math.MaxInt64)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, all, int64(50_000/1024), "asked once for each 1,024 entries: %.40s", result)
			for _, last := range []int64{all / 3, all - all/10} {
				asked, got, err := call(last)
				assert.True(t, isZero(got))
				require.ErrorIs(t, causeOf(err), context.Canceled)
				_, isTransport := errors.AsType[*gateway.TransportError](causeOf(err))
				assert.True(t, isTransport, "%T", causeOf(err))
				assert.Less(t, asked, last+20, "nothing more is read: %.40s", result)
			}
		}
	}
}

// row H15: a result that holds nothing, at any depth, is no invoice unless the message is
// that of a success.
func TestHostile_InvoiceThatHoldsNothing(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]gateway.Outcome{
		`{}`: gateway.OutcomeUnknown, `[]`: gateway.OutcomeUnknown, `[null]`: gateway.OutcomeUnknown, `[[]]`: gateway.OutcomeUnknown,
		`[{}]`: gateway.OutcomeUnknown, `[[],{},null,""]`: gateway.OutcomeUnknown, `{"invoice":null}`: gateway.OutcomeUnknown,
		`{"data":[{"id":""}]}`: gateway.OutcomeUnknown, strings.Repeat("[", 1_000) + strings.Repeat("]", 1_000): gateway.OutcomeUnknown,
		`[0]`: gateway.OutcomeSucceeded, `[false]`: gateway.OutcomeSucceeded, `[[],[{}],[{"id":1}]]`: gateway.OutcomeSucceeded,
		`{"a":{"b":[null,"x"]}}`: gateway.OutcomeSucceeded,
	} {
		got, err := cannedClient(t, 200, `{"message":"Order exists","result":`+result+`,"meta":{}}`).CreateInvoice(t.Context(), order("A-17"))
		assertInvariants(t, got, err)
		assert.Equal(t, want, gateway.OutcomeOf(err), "%.40s", result)
		got, err = cannedClient(t, 200, enveloped(result)).CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err, "%.40s", result)
		assert.Equal(t, result, string(got.Raw))
	}
}

// The pointer of a drift is bounded, however long the names in the response are.
func TestHostile_DriftPointer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for method, body := range map[string]string{
		"Withdrawal":    enveloped(strings.Replace(withdrawalJSON, `{`, `{"`+long+`":1,`, 1)),
		"Balance":       enveloped(`{"BTC":1,"` + long + `":null}`),
		"ExchangeRates": enveloped(`{"BTC":{"usd":1,"eur":1},"` + long + `":null}`),
	} {
		drift := drifted(t, body, func(c *gateway.Client) error {
			_, err := subjectNamed(method).call(t.Context(), c)
			return err
		})
		require.Len(t, drift, 1, method)
		assert.Regexp(t, `^/result/x+`, drift[0].Pointer)
		assert.LessOrEqual(t, len(drift[0].Pointer), 1<<10, method)
		assert.Greater(t, len(drift[0].Pointer), 1_000, method)
	}
}

// row H18: what the first attempt differed in is not reported with the second.
func TestHostile_DriftOfEachAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		truncated := `{"extra":1,"message":"Operation was successful.","result":{"withdraw`
		for name, last := range map[string]func() (*http.Response, error){
			"a refusal":                   func() (*http.Response, error) { return reply(404, refused("No.")), nil },
			"a status to try again after": func() (*http.Response, error) { return reply(503, ""), nil },
			"no response":                 func() (*http.Response, error) { return nil, errors.New("no route") },
			"a redirect":                  func() (*http.Response, error) { return reply(302, ""), nil },
		} {
			attempts, seen := 0, &driftObserver{}
			c := newClient(t, "http://localhost", gateway.WithObserver(seen), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 3}),
				through(func(*http.Request) (*http.Response, error) {
					if attempts++; attempts > 1 {
						return last()
					}
					response := reply(200, "")
					response.Body = io.NopCloser(io.MultiReader(strings.NewReader(truncated), iotest.ErrReader(io.ErrUnexpectedEOF)))
					response.ContentLength = 1_000
					return response, nil
				}))
			_, err := c.Withdrawal(t.Context(), requestID)
			require.Error(t, err, name)
			assert.GreaterOrEqual(t, attempts, 2, name)
			assert.Equal(t, []gateway.Drift{{Operation: "withdrawal", Pointer: "/extra", Kind: gateway.DriftUnknownField}}, seen.all, name)
		}
	})
}

const password = "hunter2-and-more"

// net/http quotes a response that is not HTTP as a whole. Cleaning that text
// costs memory in proportion to its size. This test is not parallel, because it
// measures.
func TestHostile_QuotedResponses(t *testing.T) {
	many := strings.Repeat("://", 80_000)
	account := "http://user:" + password + "@host/ "
	for name, response := range map[string]string{
		"many URLs for a length":              "HTTP/1.1 200 OK\r\nContent-Length: " + many + "\r\n\r\n",
		"many URLs for a status":              "HTTP/1.1 " + many + "\r\n\r\n",
		"many URLs for a protocol":            many + " 200 OK\r\n\r\n",
		"a password and many URLs":            "HTTP/1.1 200 OK\r\nContent-Length: " + account + many + "\r\n\r\n",
		"a password and many URLs, as status": "HTTP/1.1 " + account + many + "\r\n\r\n",
		"many passwords":                      "HTTP/1.1 " + strings.Repeat(account, 5000) + "\r\n\r\n",
	} {
		for _, s := range []subject{subjectNamed("Withdrawal"), subjectNamed("CreateInvoice")} {
			server := faultserver.New(faultserver.Respond(response))
			transport := &http.Transport{DialContext: server.DialContext}
			c := newClient(t, "http://localhost", once(), gateway.WithHTTPClient(&http.Client{Transport: transport}))
			var err error
			got := bytesAllocated(func() { _, err = s.call(t.Context(), c) })
			transport.CloseIdleConnections()
			server.Close()
			assert.Less(t, got, uint64(8<<20), "%s: %s allocates %d bytes", name, s.name, got)
			assertInvariants(t, nil, err)
			require.Error(t, err, name)
			assert.Less(t, len(err.Error()), 4<<10, name)
			assertSilent(t, err, password)
		}
	}
}

// Wherever a password is in the text of a transport's error, it is not shown.
func TestHostile_PasswordsInErrors(t *testing.T) {
	t.Parallel()
	account := "http://user:" + password + "@proxy:3128"
	for name, text := range map[string]string{
		"in a proxy's address that is bad": `invalid proxy address "http://user:` + password[:2] + "/" + password + `%zz@proxy:3128"`,
		"in a proxy's address that is bad, wrapped": `proxyconnect: invalid proxy address "` + password +
			`://u:p@h": parse "` + password + `": bad`,
		"in a URL":                    "cannot reach " + account,
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

// With another key for a call both keys are removed from the response.
func TestHostile_BothKeysAreRemoved(t *testing.T) {
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
				w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("X-Request-Id", canary+" "+other)
					rw.Header().Set("Server", other+" "+canary)
					quoted := quotedJSON(canary + " and " + other)
					rw.Header().Set("Content-Type", "application/json")
					rw.WriteHeader(status)
					_, _ = io.WriteString(rw, `{"message":`+quoted+`,"result":[`+quoted+`],"meta":{"a":`+quoted+`}}`)
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

// assertBothGone asserts what a refusal holds in place of two keys.
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

// A service that echoes its requests may send them as JSON in a string of JSON,
// so that the key is escaped more than once.
func TestHostile_KeysThatAreEscapedTwice(t *testing.T) {
	t.Parallel()
	slashes := func(text string) string { return strings.ReplaceAll(text, "/", `\/`) }
	unicodes := func(text string) string { return strings.ReplaceAll(text, "/", `\u002f`) }
	plain := func(text string) string { return text }
	for name, escape := range map[string]func(string) string{
		"plain slashes": plain, "escaped slashes": slashes, "slashes by their code": unicodes,
	} {
		echoed := `"bad: ` + slashed + `"`
		for level := range 4 {
			if level > 0 {
				echoed = quotedJSON(`{"apiKey":` + echoed + `}`)
			} else {
				echoed = quotedJSON(slashed)
			}
			echoed = escape(echoed)
			for _, status := range []int{200, 400, 500} {
				assertNoSlashedKey(t, fmt.Sprintf("%s, level %d, %d", name, level, status), echoed, status)
			}
		}
	}
}

func assertNoSlashedKey(t *testing.T, name, echoed string, status int) {
	t.Helper()
	forEach(t, name, func(t *testing.T, s subject) {
		for _, body := range []string{
			`{"message":` + echoed + `,"result":[],"meta":{}}`,
			`{"message":"m","result":[],"meta":{"request":` + echoed + `}}`,
			`{"message":"m","result":{"request":` + echoed + `},"meta":{}}`,
			`{"message":"m","result":{` + echoed + `:1},"meta":{}}`,
			`<html>` + echoed,
		} {
			var response gateway.Response
			c, err := gateway.New("http://localhost", slashed, once(), gateway.WithOrderGuard(nil),
				through(func(*http.Request) (*http.Response, error) {
					return reply(status, body, "X-Request-Id", echoed), nil
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

// No name of a member forges a line of a log.
func TestHostile_NamesInErrors(t *testing.T) {
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

// A Response holds one response, the last.
func TestWithResponse_IsTheLastResponse(t *testing.T) {
	t.Parallel()
	cut := func() (*http.Response, error) {
		whole := `{"message":"first","meta":{"first":1},"result":` + withdrawalJSON + `,`
		got := reply(201, whole, "X-First", "1")
		got.Body = io.NopCloser(io.MultiReader(strings.NewReader(whole), brokenReader{io.ErrUnexpectedEOF}))
		return got, nil
	}
	refuse := func(status int) func() (*http.Response, error) {
		return func() (*http.Response, error) { return reply(status, refused("No.")), nil }
	}
	for _, tt := range []struct {
		name    string
		second  func() (*http.Response, error)
		status  int
		message string
		result  string
	}{
		{"a refusal", refuse(404), 404, "No.", "[]"},
		{"a page", func() (*http.Response, error) { return reply(404, "<html>"), nil }, 404, "", ""},
		{"nothing", func() (*http.Response, error) { return reply(501, ""), nil }, 501, "", ""},
		{"a refusal until the last attempt", refuse(503), 503, "No.", "[]"},
		{"a page until the last attempt", func() (*http.Response, error) { return reply(503, "<html>"), nil }, 503, "", ""},
		{"a redirect", func() (*http.Response, error) { return reply(302, ""), nil }, 302, "", ""},
		{"a success", func() (*http.Response, error) { return reply(201, enveloped(withdrawalJSON)), nil }, 201, "Operation was successful.", withdrawalJSON},
		{"a response without a result", func() (*http.Response, error) { return reply(201, `{"message":"m"}`), nil }, 201, "m", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				response := gateway.Response{StatusCode: 1, Message: "old", Result: json.RawMessage("1")}
				p := paced(t, gateway.RetryPolicy{}, cut, tt.second)
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
func TestWithResponse_IsReset(t *testing.T) {
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
			response := gateway.Response{StatusCode: 200, Message: "old", Attempts: 9, Result: json.RawMessage("1")}
			got, err := s.call(tt.ctx, cannedClient(t, s.status, s.body()), tt.opts(gateway.WithResponse(&response))...)
			assertInvariants(t, got, err)
			require.ErrorIs(t, err, gateway.ErrInvalidArgument)
			assert.Equal(t, gateway.Response{}, response)
		})
	}
}

// A requestError is an error that holds the request, as some transports
// return.
type requestError struct {
	Request *http.Request
	Header  http.Header
	Text    string
}

func (e *requestError) Error() string { return "cannot send " + e.Text }

// A transport's error may hold the request. It is found, and not shown.
func TestHostile_ErrorsThatHoldTheRequest(t *testing.T) {
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
			require.Equal(t, !s.write, ok, "the transport's error is found, unless its text has the key")
			if ok {
				assert.Equal(t, canary, held.Header.Get("X-Api-Key"), "it is the transport's own")
			}
			_, err = json.Marshal(found)
			assert.NoError(t, err, "it can be logged as JSON")
		})
	}
}

// A heldBody is one whose reads nothing ends until it is released.
type heldBody chan struct{}

func (b heldBody) Read([]byte) (int, error) { <-b; return 0, io.EOF }
func (heldBody) Close() error               { return nil }

// row H2: of a response whose body is never read the status is still reported. The attempt ends,
// and a success is attempted again unless the caller's context has ended.
func TestHostile_HeldBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		status   int
		limit    time.Duration // of the caller's context
		attempts int
	}{
		{"a success", 200, time.Hour, 2},
		{"a success, and the caller's context ends first", 200, time.Second, 1},
		{"a refusal", 400, time.Hour, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body, sent := make(heldBody), 0
				defer close(body)
				c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
					sent++
					return &http.Response{StatusCode: tt.status, Body: body}, nil
				}), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 2, AttemptTimeout: time.Minute}))
				ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				got, err := c.Withdrawal(ctx, requestID)
				assertInvariants(t, got, err)
				assert.Equal(t, tt.attempts, sent)
				if tt.status == 200 {
					failure, ok := errors.AsType[*gateway.TransportError](err)
					require.True(t, ok, "%v", err)
					assert.Equal(t, gateway.PhaseRead, failure.Phase)
					assert.Equal(t, tt.attempts > 1, gateway.SafeToRetry(err))
					return
				}
				refusal, ok := errors.AsType[*gateway.APIError](err)
				require.True(t, ok, "%v", err)
				assert.Equal(t, tt.status, refusal.StatusCode)
			})
		})
	}
}

// Intervals whose sum overflows are refused.
func TestHostile_LongIntervals(t *testing.T) {
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

// A rate that is made by hand can be of any size. One that would take too long
// to write out is refused by its exponent.
func TestHostile_RatesMadeByHand(t *testing.T) {
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
			rates := &gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "BTC", USD: decimal.NewNullDecimal(rate), EUR: decimal.NewNullDecimal(rate)}}}
			for _, fiat := range []string{"usd", "eur"} {
				got, err := rates.ToCoin(one, fiat, "BTC", 8)
				assert.True(t, got.IsZero())
				assertRefused(t, err, "to_coin", "rate", "")
				got, err = rates.ToFiat(one, fiat, "BTC")
				assert.True(t, got.IsZero())
				assertRefused(t, err, "to_fiat", "rate", "")
			}
		})
	}
}

// Values made by hand do no harm.
func TestHostile_ValuesMadeByHand(t *testing.T) {
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
			text, ok := (&gateway.Invoice{Raw: json.RawMessage(raw)}).Text("a")
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

// A long run of backslashes, in which a key could be escaped, is looked through
// in one pass: this test would not end otherwise.
func TestKey_RunsOfBackslashes(t *testing.T) {
	t.Parallel()
	run := strings.Repeat(`\\`, 1<<19)
	c := cannedClient(t, 200, enveloped(`{"address":"`+run+canary+`"}`))
	invoice, err := c.CreateInvoice(t.Context(), order("A-17"))
	assertInvariants(t, invoice, err)
	require.NoError(t, err)
	assert.NotContains(t, string(invoice.Raw), canary)

	c = cannedClient(t, 400, refused(run))
	_, err = c.Withdrawal(t.Context(), requestID)
	require.Error(t, err)
}

// A client with a source of keys removes the recent ones, also where the source
// is not called, or has been called again since.
func TestWithAPIKeySource_RecentKeys(t *testing.T) {
	t.Parallel()
	const older, newer = "older-key-5f1d8e0b", "newer-key-7a64c932"
	given := older
	body := ""
	c := clientWithKeySource(t, "http://localhost", func(context.Context) (string, error) { return given, nil },
		through(func(*http.Request) (*http.Response, error) { return reply(403, body), nil }))
	_, err := c.Withdrawal(t.Context(), requestID)
	require.Error(t, err)
	given = newer
	body = refused("not " + older + " or " + newer)
	for _, call := range []func() error{
		func() error { _, err := c.Withdrawal(t.Context(), requestID); return err },
		func() error { _, err := c.ExchangeRates(t.Context()); return err },
	} {
		err := call()
		assert.ErrorContains(t, err, `403: "not [REDACTED] or [REDACTED]"`)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("revoked " + newer))
	for _, call := range []func() error{
		func() error { _, err := catalogOf(t, c, gateway.CacheOptions{}).Get(ctx); return err },
		func() error {
			_, err := c.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{})
			return err
		},
		func() error {
			for _, err := range c.WaitWithdrawals(ctx, []string{requestID}, nil, gateway.WaitOptions{}) {
				return err
			}
			return nil
		},
	} {
		err := call()
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, "revoked [REDACTED]")
		assert.NotContains(t, err.Error(), newer)
	}
}

// However many keys a source returns at a time, that of a call is removed from
// its error.
func TestWithAPIKeySource_ManyKeysAtATime(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := clientWithKeySource(t, "http://localhost", func(context.Context) (string, error) {
		return fmt.Sprintf("CANARY-key-number-%02d", asked.Add(1)%64), nil
	}, through(func(req *http.Request) (*http.Response, error) {
		return reply(400, refused("bad key "+req.Header.Get("X-Api-Key"))), nil
	}))
	var callers sync.WaitGroup
	var shown atomic.Int64
	for range 64 {
		callers.Go(func() {
			for range 200 {
				if _, err := c.Withdrawal(t.Context(), requestID); strings.Contains(err.Error(), "CANARY") {
					shown.Add(1)
				}
			}
		})
	}
	callers.Wait()
	assert.Zero(t, shown.Load())
}

// An order is guarded whether its key came from the source or with the call.
func TestWithAPIKeySource_GuardAndCallKey(t *testing.T) {
	t.Parallel()
	c := clientWithKeySource(t, "http://localhost", sameKey,
		through(func(*http.Request) (*http.Response, error) { return reply(500, refused("No.")), nil }))
	_, err := c.CreateInvoice(t.Context(), order("A-17"))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	_, err = c.CreateInvoice(t.Context(), order("A-17"), gateway.WithAPIKey(canary))
	require.ErrorIs(t, err, gateway.ErrOrderOutcomeUnknown)
}

// A temporary error of a source does not end a wait.
func TestWithAPIKeySource_TemporaryError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := clientWithKeySource(t, "http://localhost", func(context.Context) (string, error) {
			if asked++; asked == 1 {
				return "", &net.DNSError{Err: "try again", IsTemporary: true}
			}
			return canary, nil
		}, through(func(*http.Request) (*http.Response, error) {
			return reply(201, enveloped(strings.Replace(withdrawalJSON, "PENDING", "COMPLETED", 1))), nil
		}))
		w, err := c.WaitWithdrawal(t.Context(), requestID, gateway.WaitOptions{})
		require.NoError(t, err)
		assert.Equal(t, gateway.WithdrawalCompleted, w.Status)
	})
}

// An erringContext ends with an error of its own.
type erringContext struct {
	context.Context
	text string
}

func (c erringContext) Err() error {
	if c.Context.Err() == nil {
		return nil
	}
	return errors.New(c.text)
}

func TestKey_InTheErrorOfAContext(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	forEach(t, "its text is redacted", func(t *testing.T, s subject) {
		result, err := s.call(erringContext{ended, "my key is " + canary}, newClient(t, "http://localhost"))
		assertInvariants(t, result, err)
		assert.ErrorContains(t, err, "my key is [REDACTED]")
	})
}

// The meta of a Response and that of an error share no memory.
func TestWithResponse_MetaIsACopy(t *testing.T) {
	t.Parallel()
	var response gateway.Response
	c := cannedClient(t, 400, `{"message":"No.","result":[],"meta":{"a":1}}`)
	_, err := c.Withdrawal(t.Context(), requestID, gateway.WithResponse(&response))
	var refusal *gateway.APIError
	require.ErrorAs(t, err, &refusal)
	copy(response.Meta, bytes.Repeat([]byte("x"), len(response.Meta)))
	assert.Equal(t, `{"a":1}`, string(refusal.Meta))
}
