package gateway_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/invariant"
)

// Errors without a response do not show the key either, nor what they wrap.
func TestSecret_transportErrors(t *testing.T) {
	t.Parallel()
	for name, transport := range map[string]http.RoundTripper{
		"a fault that names the key": readThen(errors.New("bad header X-Api-Key: " + canary)),
		"a fault that wraps it":      readThen(fmt.Errorf("a: %w", errors.New(canary))),
		"a fault that prints the request": tripper(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("cannot send %v", r.Header)
		}),
		"the end of the context": tripper(func(*http.Request) (*http.Response, error) { return nil, context.Canceled }),
	} {
		forEach(t, name, func(t *testing.T, s subject) {
			c := newClient(t, "https://gateway.example", once(), gateway.WithHTTPClient(&http.Client{Transport: transport}))
			got, err := s.call(t.Context(), c)
			assertInvariants(t, got, err)
			assertSilent(t, err, canary)
		})
	}
}

// sanitizedBy is the error of a call whose transport fails with err.
func sanitizedBy(t *testing.T, err error, opts ...gateway.Option) error {
	t.Helper()
	opts = append([]gateway.Option{gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}), gateway.WithHTTPClient(&http.Client{Transport: errorTrip(err)})}, opts...)
	c, failure := gateway.New("https://gateway.example", redactedKey, opts...)
	require.NoError(t, failure)
	_, failure = c.CoinNetworks(t.Context())
	require.Error(t, failure)
	return failure
}

// redactedKey has what encodings change.
const redactedKey = `Canary/5f1d 8e0b+7a"64<c9`

// responded is the error and the response of a call that got a response.
func responded(t *testing.T, key string, respond func() (*http.Response, error), opts ...gateway.Option) (gateway.Response, error) {
	t.Helper()
	opts = append([]gateway.Option{once(), through(func(*http.Request) (*http.Response, error) { return respond() })}, opts...)
	c, err := gateway.New("https://gateway.example", key, opts...)
	require.NoError(t, err)
	var response gateway.Response
	_, err = c.Balance(t.Context(), gateway.BalanceQuery{}, gateway.WithResponse(&response))
	require.Error(t, err)
	return response, err
}

// shown is every text of a value, and of the errors within it.
func shown(v any) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%v\n%+v\n%s\n", v, v, invariant.Dump(v))
	if err, ok := v.(error); ok {
		for inner := err; inner != nil; inner = errors.Unwrap(inner) {
			fmt.Fprintf(&out, "%v\n%+v\n", inner, inner)
		}
	}
	return out.String()
}

// Errors.As reaches no error of which a text has the key, its own or that of what it
// wraps.
func TestRedaction_As(t *testing.T) {
	t.Parallel()
	named := errors.New("at " + redactedKey)
	for name, err := range map[string]error{
		"a protocol error":         textproto.ProtocolError("malformed header " + redactedKey),
		"a wrapped protocol error": fmt.Errorf("a: %w", textproto.ProtocolError(redactedKey)),
		"a URL":                    &url.Error{Op: "Get", URL: "https://gateway.example/" + url.PathEscape(redactedKey), Err: io.EOF},
		"a URL with a password":    &url.Error{Op: "Get", URL: "http://user:hunter2@proxy", Err: io.EOF},
		"an operation":             &net.OpError{Op: "dial", Net: "tcp", Err: named},
		"a lookup":                 &net.DNSError{Err: "no such host", Name: redactedKey},
		"a silent wrapper":         silent{named},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := sanitizedBy(t, fmt.Errorf("a: %w", errors.Join(io.EOF, err)))
			var (
				protocol textproto.ProtocolError
				located  *url.Error
				op       *net.OpError
				lookup   *net.DNSError
				wrapper  silent
				timeout  interface{ Timeout() bool }
				netError net.Error
				unwrap   interface{ Unwrap() error }
				many     interface{ Unwrap() []error }
			)
			for _, target := range []any{&protocol, &located, &op, &lookup, &wrapper, &timeout, &netError, &unwrap, &many} {
				inner := failure
				for ; inner != nil; inner = errors.Unwrap(inner) {
					_ = errors.As(inner, target)
				}
				text := fmt.Sprintf("%v %+v %s", target, target, invariant.Dump(target))
				assert.NotContains(t, text, redactedKey, "%T", target)
				assert.NotContains(t, text, "hunter2", "%T", target)
				assert.NotContains(t, text, url.PathEscape(redactedKey), "%T", target)
			}
		})
	}
}

type silent struct{ error }

func (silent) Error() string   { return "nothing to see" }
func (s silent) Unwrap() error { return s.error }

// What callers tell errors apart by is still there.
func TestRedaction_As_keeps(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	failure := sanitizedBy(t, reset)
	op, ok := errors.AsType[*net.OpError](failure)
	require.True(t, ok)
	assert.Same(t, reset, op)
	require.ErrorIs(t, failure, syscall.ECONNRESET)
	errno, ok := errors.AsType[syscall.Errno](failure)
	assert.True(t, ok)
	assert.Equal(t, syscall.ECONNRESET, errno)

	_, ok = errors.AsType[x509.UnknownAuthorityError](sanitizedBy(t, x509.UnknownAuthorityError{Cert: &x509.Certificate{Raw: []byte("a")}}))
	assert.True(t, ok)
	_, ok = errors.AsType[x509.HostnameError](sanitizedBy(t, x509.HostnameError{Certificate: &x509.Certificate{}, Host: "gateway.example"}))
	assert.True(t, ok)
	require.ErrorIs(t, sanitizedBy(t, fmt.Errorf("at %s: %w", redactedKey, context.DeadlineExceeded)), context.DeadlineExceeded)

	slow := sanitizedBy(t, &net.DNSError{Err: "slow", Name: redactedKey, IsTimeout: true})
	var timeout net.Error
	require.ErrorAs(t, slow, &timeout, "a timeout that names the key is a timeout")
	assert.True(t, timeout.Timeout())
	assert.NotContains(t, shown(timeout), redactedKey)
}

// plainHandler writes records without quotes.
type plainHandler struct{ out *strings.Builder }

func (plainHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h plainHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h plainHandler) WithGroup(string) slog.Handler          { return h }
func (h plainHandler) Handle(_ context.Context, r slog.Record) error {
	h.out.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(h.out, " %s=%s", a.Key, a.Value); return true })
	h.out.WriteString("\n")
	return nil
}

// No text of a service or transport begins a line of its own in a log.
func TestRedaction_forgedLines(t *testing.T) {
	t.Parallel()
	for name, forged := range map[string]string{"a line end": "\n", "a return": "\r", "an escape": "\x1b", "a bidi control": "\u202e", "a line separator": "\u2028", "a C1 control": "\u009b", "a byte that is not UTF-8": "\x9b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			logger := gateway.WithLogger(slog.New(plainHandler{&log}))
			for _, status := range []int{200, 400} {
				quoted := strings.NewReplacer("\n", `\n`, "\r", `\r`, "\x1b", `\u001b`).Replace(forged)
				_, _ = responded(t, redactedKey, respondWith(status, `{"message":"a`+quoted+`forged","meta":{"a`+quoted+`forged":1},"result":{"a`+quoted+`forged":[]},"b`+quoted+`forged":2}`), logger)
			}
			failure := sanitizedBy(t, errors.New("a"+forged+"forged"), logger)
			log.WriteString(failure.Error())
			assert.Contains(t, log.String(), "forged")
			assert.NotContains(t, log.String(), forged+"forged")
		})
	}
}

// No password in the text of a transport's error is shown, also where the text is cut. What a
// password is, is tested in internal/redact.
func TestRedaction_passwordsOfTransports(t *testing.T) {
	t.Parallel()
	account := "http://user:" + password + "@proxy:3128"
	for name, text := range map[string]string{
		"in a URL":                    "cannot reach " + account,
		"across the cut of the text":  strings.Repeat("p", 1024-len("http://user:")-len(password)+4) + account,
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

// assertSilent asserts that nothing that prints, encodes, logs or dumps v shows a key.
func assertSilent(t testing.TB, v any, key string) {
	t.Helper()
	assert.Empty(t, invariant.Shows(v, key), "a key is shown")
}

func quotedJSON(text string) string {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return string(quoted)
}

// A requestError is an error that holds the request, as some transports
// return.
type requestError struct {
	Request *http.Request
	Header  http.Header
	Text    string
}

func (e *requestError) Error() string { return "cannot send " + e.Text }

// A transport's error may hold the request. It is found, and no text of the client's error shows the key.
func TestRedaction_errorsThatHoldTheRequest(t *testing.T) {
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
			_, err := s.call(t.Context(), c)
			require.Error(t, err)
			found := err
			if lost, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
				assert.True(t, s.write)
				found = lost.Cause
			}
			for _, shown := range []error{err, found} {
				encoded, err := json.Marshal(shown)
				require.NoError(t, err)
				assert.NotContains(t, fmt.Sprintf("%v %+v %s", shown, shown, encoded), canary)
			}
			held, ok := errors.AsType[*requestError](found)
			require.Equal(t, !s.write && !strings.HasPrefix(name, "with "), ok, "the transport's error is found, unless a text has the key")
			if ok {
				assert.Equal(t, canary, held.Header.Get("X-Api-Key"), "it is the transport's own")
			}
		})
	}
}
