package gateway_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unsafe"

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
		"the key everywhere":    {gateway.WithAPIKeyOnPublicCalls(), gateway.WithInvoiceFormat(gateway.TableInvoiceFormat)},
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
		t.Run("row 82: "+name, func(t *testing.T) {
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

// Errors of the client's own do not show a key.
func TestSecret_argumentErrors(t *testing.T) {
	t.Parallel()
	for _, bad := range badKeys {
		if !strings.Contains(bad.key, canary) {
			continue
		}
		_, err := gateway.New("https://gateway.example", bad.key)
		assertSilent(t, err, canary)
		_, err = newClient(t, "https://gateway.example").CoinNetworks(t.Context(), gateway.WithAPIKey(bad.key))
		assertSilent(t, err, canary)
	}
	_, err := newClient(t, "https://gateway.example").CoinNetwork(t.Context(), canary+"/")
	assertSilent(t, err, canary)
	_, err = gateway.New("https://"+canary+"@gateway.example", "")
	assertSilent(t, err, canary)
}
