package gateway_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// A dump writes every text that can be reached from a value by reflection,
// through pointers, maps and unexported fields, as a debugger or a dumping
// library would.
type dump struct {
	out  strings.Builder
	seen map[visit]bool
}

type visit struct {
	at   unsafe.Pointer
	kind reflect.Type
}

// dumped is the dump of a value.
func dumped(v any) string {
	d := &dump{seen: map[visit]bool{}}
	d.walk(reflect.ValueOf(v))
	return d.out.String()
}

func (d *dump) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		fmt.Fprintf(&d.out, "%s\n", v.String())
	case reflect.Pointer:
		if !v.IsNil() && d.first(v) {
			d.walk(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			d.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			d.walk(v.Field(i))
		}
	case reflect.Map:
		if v.IsNil() || !d.first(v) {
			return
		}
		for each := v.MapRange(); each.Next(); {
			d.walk(each.Key())
			d.walk(each.Value())
		}
	case reflect.Slice, reflect.Array:
		d.elements(v)
	}
}

// elements walks a slice, and beyond its length, where a buffer still holds
// what it held.
func (d *dump) elements(v reflect.Value) {
	if v.Kind() == reflect.Slice {
		if v.IsNil() || !d.first(v) {
			return
		}
		v = v.Slice(0, v.Cap())
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		d.bytes(v)
		return
	}
	for i := range v.Len() {
		d.walk(v.Index(i))
	}
}

func (d *dump) bytes(v reflect.Value) {
	defer d.out.WriteByte('\n')
	if v.Kind() == reflect.Slice {
		d.out.Write(v.Bytes())
		return
	}
	for i := range v.Len() {
		d.out.WriteByte(byte(v.Index(i).Uint()))
	}
}

func (d *dump) first(v reflect.Value) bool {
	at := visit{v.UnsafePointer(), v.Type()}
	if d.seen[at] {
		return false
	}
	d.seen[at] = true
	return true
}

// assertSilent asserts that nothing that prints, encodes, logs or dumps v
// shows a key.
func assertSilent(t testing.TB, v any, key string) {
	t.Helper()
	texts := map[string]string{"a dump": dumped(v)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%#q", "%x", "%X", "% x", "%d"} {
		texts[verb] = fmt.Sprintf(verb, v)
	}
	var text, encoded, xmlText, gobText bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
	slog.New(slog.NewJSONHandler(&encoded, nil)).Info("m", "v", v)
	texts["slog as text"], texts["slog as JSON"] = text.String(), encoded.String()
	if out, err := json.Marshal(v); err == nil {
		texts["JSON"] = string(out)
	}
	_ = xml.NewEncoder(&xmlText).Encode(v)
	texts["XML"] = xmlText.String()
	func() {
		defer func() { _ = recover() }() // gob does not take every type
		_ = gob.NewEncoder(&gobText).Encode(v)
	}()
	texts["gob"] = gobText.String()
	spellings := []string{key, fmt.Sprintf("%x", key), fmt.Sprintf("%X", key), fmt.Sprintf("% x", key), fmt.Sprint([]byte(key))}
	for how, text := range texts {
		for _, spelled := range spellings {
			if at := strings.Index(text, spelled); at >= 0 {
				assert.Fail(t, "a key is shown", "%s of %T: …%.80q", how, v, text[max(at-40, 0):])
				return
			}
		}
	}
}

// The dump must be able to find a key, or it proves nothing.
func TestDump_finds(t *testing.T) {
	t.Parallel()
	type inner struct{ hidden any }
	text := canary
	for name, v := range map[string]any{
		"a text":               canary,
		"a pointer":            &text,
		"an unexported field":  inner{canary},
		"a deep field":         &inner{[]any{map[string]*inner{"a": {canary}}}},
		"a name":               map[string]int{canary: 1},
		"bytes":                []byte(canary),
		"hidden bytes":         inner{[]byte(canary)},
		"an array of bytes":    inner{[len(canary)]byte([]byte(canary))},
		"an array":             [...]string{canary},
		"a header":             http.Header{"A": {canary}},
		"a buffer that is cut": []byte(canary)[:0],
		"an error":             fmt.Errorf("a: %w", errors.New(canary)),
	} {
		assert.Contains(t, dumped(v), canary, name)
	}
	loop := &inner{}
	loop.hidden = loop
	assert.Empty(t, dumped(loop), "a loop ends")
}

// A client shows its key in no way, also after its connections have carried
// it, nor do its options.
func TestSecret_client(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(200, enveloped(ratesJSON)))
	for name, opts := range map[string][]gateway.Option{
		"the default transport": nil,
		"a shared transport":    {gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{}})},
		"the key everywhere":    {gateway.WithAPIKeyOnPublicCalls(), gateway.WithInvoiceFormat(gateway.InvoiceFormatTable)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, w.URL, opts...)
			for _, s := range subjects() {
				_, _ = s.call(t.Context(), c)
			}
			assertSilent(t, c, canary)
			assertSilent(t, *c, canary) // a careless caller prints a copy
			assertSilent(t, struct{ C any }{c}, canary)
			assertSilent(t, []any{c, map[string]any{"c": c}}, canary)
			for _, opt := range opts {
				assertSilent(t, opt, canary)
			}
		})
	}
	t.Run("the option of a call", func(t *testing.T) {
		t.Parallel()
		assertSilent(t, gateway.WithAPIKey(canary), canary)
		assertSilent(t, []gateway.CallOption{gateway.WithAPIKey(canary)}, canary)
	})
}

// echoes are responses in which a service repeats the key. How a key may be spelled
// is tested in package redact; here is every place that it may be in.
func echoes() map[string]http.HandlerFunc {
	handlers := map[string]http.HandlerFunc{}
	for _, status := range []int{200, 400, 302} {
		for name, body := range echoingBodies() {
			handlers[fmt.Sprintf("%s, %d", name, status)] = respond(status, body)
		}
		handlers[fmt.Sprintf("in headers, %d", status)] = echoingHeaders(status)
	}
	return handlers
}

func echoingBodies() map[string]string {
	escaped := strings.NewReplacer("C", `\u0043`, "-", `\u002D`, "5", `\u0035`).Replace(canary)
	pad := func(n int) string { return strings.Repeat("p", n) }
	return map[string]string{
		"in the message":               refused("bad key " + canary),
		"in JSON in a text":            enveloped(`{"request":` + quotedJSON(`{"apiKey":`+quotedJSON(canary)+`}`) + `}`),
		"in the message, in entities":  refused("bad key " + strings.ReplaceAll(canary, "-", "&#45;")),
		"in the message, escaped":      `{"message":"bad key ` + escaped + `","result":[],"meta":{}}`,
		"across the cut of a message":  refused(pad(1<<10-10) + canary),
		"in meta":                      `{"message":"m","result":[],"meta":{"key":"` + canary + `"}}`,
		"as a name in meta":            `{"message":"m","result":[],"meta":{"` + canary + `":1}}`,
		"as a name of the envelope":    `{"` + canary + `":1,"result":` + pairJSON + `}`,
		"as a name twice":              `{"` + canary + `":1,"` + canary + `":2,"result":[]}`,
		"as a name that ends badly":    `{"result":{"` + canary + `":{"x":nope}}}`,
		"as the result":                enveloped(`"` + canary + `"`),
		"as a name in the result":      enveloped(`{"` + canary + `":"x"}`),
		"as a name, escaped":           enveloped(`{"` + escaped + `":null}`),
		"as a coin":                    enveloped(`[{"symbol":"` + canary + `","usd":"1"}]`),
		"as a coin that is good":       enveloped(`[{"symbol":"` + canary + `","usd":"1","eur":"1","balance":"1"}]`),
		"as a rate":                    enveloped(`{"BTC":{"usd":"` + canary + `","eur":"1"}}`),
		"as an identifier":             enveloped(written(pairFields, "id", `"`+canary+`"`)),
		"as the name of a network":     enveloped(written(pairFields, "network", written(networkFields, "name", `"`+canary+`"`))),
		"as a symbol in a listing":     enveloped("[" + written(pairFields, "coin", written(coinFields, "symbol", `"`+canary+`"`)) + "]"),
		"as an amount":                 enveloped(written(withdrawalFields, "amount", `"`+canary+`"`)),
		"as a status":                  enveloped(written(withdrawalFields, "status", `"`+canary+`"`)),
		"as a destination, escaped":    enveloped(written(withdrawalFields, "destination", `"`+escaped+`"`)),
		"as an unknown member":         enveloped(strings.Replace(withdrawalJSON, "{", `{"key":"`+canary+`",`, 1)),
		"in a page":                    "<html>" + canary + "</html>",
		"across the 8 KiB cut":         "<html>" + pad(8<<10-16) + canary + pad(9000),
		"across the 8 KiB cut, result": enveloped(`"` + pad(8<<10-60) + canary + `"`),
		"across the sample's cut":      "<html>" + pad(105) + canary,
		"at the end of what came":      "<html>" + canary[:len(canary)-1],
	}
}

// echoingHeaders repeats the key in headers, also across the lengths at which they
// are cut.
func echoingHeaders(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req-"+canary)
		w.Header().Set("X-Correlation-Id", strings.Repeat("p", 1<<10-20)+canary)
		w.Header().Set("Content-Type", strings.Repeat("p", 256-20)+canary)
		w.Header().Set("Location", "/?apiKey="+canary)
		w.Header().Set("Server", canary)
		w.Header()["X-Echo-"+canary] = []string{"1"}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>")
	}
}

// Whatever a service repeats, the key is in nothing that the client hands out, not
// even most of it.
func TestSecret_echoed(t *testing.T) {
	t.Parallel()
	for name, handler := range echoes() {
		t.Run("row R22: "+name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, handler)
			for _, s := range subjects() {
				c := newClient(t, w.URL, once(), gateway.WithOrderGuard(nil))
				var response gateway.Response
				got, err := s.call(t.Context(), c, gateway.WithResponse(&response))
				assertInvariants(t, got, err)
				for _, v := range []any{got, err, response, &response} {
					assertSilent(t, v, canary[:16])
				}
				_, err = s.call(t.Context(), c)
				assertSilent(t, err, canary[:16])
			}
		})
	}
}

// A header's name arrives in another case than it was sent in.
func TestSecret_headerNameInAnotherCase(t *testing.T) {
	t.Parallel()
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header()[canary] = []string{"1"}
		respond(200, enveloped(ratesJSON))(rw, r)
	})
	var response gateway.Response
	_, err := newClient(t, w.URL).ExchangeRates(t.Context(), gateway.WithResponse(&response))
	require.NoError(t, err)
	for name := range response.Header {
		assert.False(t, strings.EqualFold(name, canary), "%s", name)
	}
}

// Errors without a response do not show the key either, nor what they wrap.
func TestSecret_transportErrors(t *testing.T) {
	t.Parallel()
	for name, transport := range map[string]http.RoundTripper{
		"a fault that names the key": failing{errors.New("bad header X-Api-Key: " + canary)},
		"a fault that wraps it":      failing{fmt.Errorf("a: %w", errors.New(canary))},
		"a fault that prints the request": roundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("cannot send %v", r.Header)
		}),
		"the end of the context": roundTripper(func(*http.Request) (*http.Response, error) { return nil, context.Canceled }),
	} {
		forEach(t, name, func(t *testing.T, s subject) {
			c := newClient(t, "https://gateway.example", once(), gateway.WithHTTPClient(&http.Client{Transport: transport}))
			got, err := s.call(t.Context(), c)
			assertInvariants(t, got, err)
			assertSilent(t, err, canary)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// failing is a transport that fails after it has read the request.
type failing struct{ err error }

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return nil, f.err
}

// Errors of the client's own do not show a key; those of a bad key are tested in New.
func TestSecret_argumentErrors(t *testing.T) {
	t.Parallel()
	_, err := newClient(t, "https://gateway.example").CoinNetwork(t.Context(), canary+"/")
	assertSilent(t, err, canary)
	_, err = gateway.New("https://"+canary+"@gateway.example", "")
	assertSilent(t, err, canary)
}

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

// A status is quoted in the text of a wait, and the quoting spells the key.
func TestRedaction_waitError(t *testing.T) {
	t.Parallel()
	const key = `abcd\nefgh1234`
	synctest.Test(t, func(t *testing.T) {
		c, err := gateway.New("http://localhost", key, through(func(*http.Request) (*http.Response, error) {
			return reply(201, enveloped(strings.Replace(withdrawalJSON, "PENDING", `abcd\u000aefgh1234`, 1))), nil
		}))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.WaitWithdrawal(ctx, requestID, gateway.WaitOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotContains(t, err.Error(), key)
		assert.Contains(t, err.Error(), "[REDACTED]")
	})
}

// No password in the text of a transport's error is shown, also where the text is cut. What a
// password is, is tested in internal/redact.
func TestRedaction_passwordsOfTransports(t *testing.T) {
	t.Parallel()
	account := "http://user:" + password + "@proxy:3128"
	for name, text := range map[string]string{
		"in a URL":                    "cannot reach " + account,
		"in each of many URLs":        strings.Repeat(account+" ", 5000),
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
func TestRedaction_bothKeys(t *testing.T) {
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

// A requestError is an error that holds the request, as some transports
// return.
type requestError struct {
	Request *http.Request
	Header  http.Header
	Text    string
}

func (e *requestError) Error() string { return "cannot send " + e.Text }

// A transport's error may hold the request. It is found, and not shown.
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

func TestRedaction_errorOfAContext(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	forEach(t, "its text is redacted", func(t *testing.T, s subject) {
		result, err := s.call(erringContext{ended, "my key is " + canary}, newClient(t, "http://localhost"))
		assertInvariants(t, result, err)
		assert.ErrorContains(t, err, "my key is [REDACTED]")
	})
}
