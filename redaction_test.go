package gateway_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// sanitizedBy is the error of a call whose transport fails with err.
func sanitizedBy(t *testing.T, err error, opts ...gateway.Option) error {
	t.Helper()
	opts = append([]gateway.Option{gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}), gateway.WithHTTPClient(&http.Client{Transport: failingWith{err}})}, opts...)
	c, failure := gateway.New("https://gateway.example", redactedKey, opts...)
	require.NoError(t, failure)
	_, failure = c.CoinNetworks(t.Context())
	require.Error(t, failure)
	return failure
}

type failingWith struct{ err error }

func (f failingWith) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// redactedKey has what encodings change.
const redactedKey = `Canary/5f1d 8e0b+7a"64<c9`

// bodyOf is a transport that responds with a status, a body and headers.
type bodyOf struct {
	status int
	body   io.Reader
	header http.Header
}

func (b bodyOf) RoundTrip(r *http.Request) (*http.Response, error) {
	header := b.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: b.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: io.NopCloser(b.body), ContentLength: -1, Request: r}, nil
}

// responded is the error and the response of a call that got a response.
func responded(t *testing.T, key string, b bodyOf, opts ...gateway.Option) (gateway.Response, error) {
	t.Helper()
	opts = append([]gateway.Option{gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}), gateway.WithHTTPClient(&http.Client{Transport: b})}, opts...)
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
	fmt.Fprintf(&out, "%v\n%+v\n%s\n", v, v, dumped(v))
	if err, ok := v.(error); ok {
		for inner := err; inner != nil; inner = errors.Unwrap(inner) {
			fmt.Fprintf(&out, "%v\n%+v\n", inner, inner)
		}
	}
	return out.String()
}

// An error of the caller's that names ours is neither ours nor shown as it is.
func TestRedaction_tooLargeOfTheCaller(t *testing.T) {
	t.Parallel()
	broken := failingReader{fmt.Errorf("a proxy that knows %s: %w", redactedKey, gateway.ErrResponseTooLarge)}
	for _, status := range []int{200, 400} {
		response, err := responded(t, redactedKey, bodyOf{status: status, body: broken})
		assert.NotContains(t, shown(err)+shown(response), redactedKey)
		assert.NotErrorIs(t, err, gateway.ErrResponseTooLarge)
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// Whatever encoding a service repeats the key in, and wherever, it is not handed out.
func TestRedaction_encodedEchoes(t *testing.T) {
	t.Parallel()
	inHex := strings.Builder{}
	inEntities := strings.Builder{}
	for _, c := range []byte(redactedKey) {
		fmt.Fprintf(&inHex, "%%%02x", c)
		fmt.Fprintf(&inEntities, "&#x%02X;", c)
	}
	for name, encoded := range map[string]string{
		"in upper case": strings.ToUpper(redactedKey), "in lower case": strings.ToLower(redactedKey),
		"in a query": url.QueryEscape(redactedKey), "in a path": url.PathEscape(redactedKey), "all percent-encoded": inHex.String(),
		"in HTML": html.EscapeString(redactedKey), "in entities": inEntities.String(), "in a JSON pointer": strings.ReplaceAll(redactedKey, "/", "~1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quoted := strings.ReplaceAll(encoded, `"`, `\"`)
			for _, body := range []string{
				"<html>" + encoded, `{"message":"bad ` + quoted + `","result":[],"meta":{"a":["` + quoted + `"]}}`, `{"message":"m","meta":{},"result":{"` + quoted + `":[{}]}}`,
			} {
				for _, status := range []int{200, 400} {
					response, err := responded(t, redactedKey, bodyOf{status, strings.NewReader(body), http.Header{"Server": {encoded}, "X-" + encoded: {"a"}}})
					text := shown(err) + shown(response)
					for _, part := range []string{encoded, encoded[:len(encoded)/2], quoted} {
						assert.NotContains(t, text, part, body)
					}
				}
			}
			assert.NotContains(t, shown(sanitizedBy(t, errors.New("at "+encoded+" b"))), encoded)
		})
	}
}

// What is not the key is the key when it is printed: quoted, in one line, or as a
// pointer.
func TestRedaction_whenPrinted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ key, body string }{
		"a line end that is quoted":          {`first\nsecond`, `{"message":"bad first\nsecond","result":[],"meta":{}}`},
		"a line end that is quoted, in HTML": {`first\nsecond`, "<html>first\nsecond"},
		"two members of a pointer":           {"result/first/second", `{"message":"m","meta":{},"result":{"first":{"second":[nope]}}}`},
		"a slash in a pointer":               {"first~1second", `{"message":"m","meta":{},"result":{"first/second":[nope]}}`},
		"a tilde in a pointer":               {"first~0second", `{"message":"m","meta":{},"result":{"first~second":[nope]}}`},
	} {
		for _, status := range []int{200, 400} {
			_, err := responded(t, tt.key, bodyOf{status: status, body: strings.NewReader(tt.body)})
			assert.NotContains(t, err.Error(), tt.key, name)
			assert.NotContains(t, fmt.Sprintf("%+v", err), tt.key, name)
			if failure, ok := errors.AsType[*gateway.DecodeError](err); ok {
				assert.NotContains(t, failure.Pointer, tt.key, name)
			}
		}
	}
}

// Texts that come one by one, such as the values of a header, are printed together.
func TestRedaction_headersSideBySide(t *testing.T) {
	t.Parallel()
	response, err := responded(t, "first second", bodyOf{400, strings.NewReader("{}"), http.Header{"Via": {"first", "second"}, "Server": {"s"}}})
	assert.NotContains(t, fmt.Sprint(response.Header), "first second")
	assert.NotContains(t, fmt.Sprintf("%+v", err), "first second")
	assert.Equal(t, "s", response.Header.Get("Server"))
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
				text := fmt.Sprintf("%v %+v %s", target, target, dumped(target))
				assert.NotContains(t, text, redactedKey, "%T", target)
				assert.NotContains(t, text, "hunter2", "%T", target)
				assert.NotContains(t, text, url.PathEscape(redactedKey), "%T", target)
			}
			assert.ErrorIs(t, failure, io.EOF, "errors.Is still finds what is inside")
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

// A password is in no error, however the URL is malformed.
func TestRedaction_passwords(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"dial http://user:hun/ter2@proxy failed", "dial http://user:hun ter2@proxy failed", `dial "http://user:hun"ter2@proxy" failed`, "dial //user:hunter2@proxy", "dial user:hunter2@proxy",
		"dial " + strings.Repeat("p", 1010) + " http://user:hunter2" + strings.Repeat("2", 4000) + "@proxy",
	} {
		failure := sanitizedBy(t, errors.New(text))
		assert.NotContains(t, shown(failure), "hun", text)
		assert.NotContains(t, shown(failure), "ter2", text)
	}
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
				_, _ = responded(t, redactedKey, bodyOf{status: status, body: strings.NewReader(`{"message":"a` + quoted + `forged","meta":{"a` + quoted + `forged":1},"result":{"a` + quoted + `forged":[]},"b` + quoted + `forged":2}`)}, logger)
			}
			failure := sanitizedBy(t, errors.New("a"+forged+"forged"), logger)
			for inner := failure; inner != nil; inner = errors.Unwrap(inner) {
				log.WriteString(inner.Error())
			}
			assert.Contains(t, log.String(), "forged")
			assert.NotContains(t, log.String(), forged+"forged")
		})
	}
}
