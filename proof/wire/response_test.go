package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
	"github.com/cryptogw/gateway/internal/testing/invariant"
	"github.com/cryptogw/gateway/internal/testing/measure"
)

// An answer is a RoundTripper that responds to every request in the same way.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	header := a.header.Clone()
	if header == nil {
		header = http.Header{"Content-Type": {"application/json"}}
	}
	return &http.Response{
		StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Header: header, Body: io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// client returns a client that gets this answer, once, and has no order guard.
func (a *answer) client(t testing.TB, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	c, err := gateway.New("https://gateway.example/merchant", canary, append(opts, gateway.WithHTTPClient(&http.Client{Transport: a}),
		gateway.WithOrderGuard(nil), gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}))...)
	require.NoError(t, err)
	return c
}

// refused is the documented envelope of an error.
func refused(message string) string {
	return fmt.Sprintf(`{"message":%q,"result":[],"meta":{}}`, message)
}

// bodySeeds are bodies of responses, good and bad, for every method.
func bodySeeds() []string {
	all := []string{
		``, ` `, "\ufeff", `null`, `[]`, `{}`, `"x"`, `{"result":[]}`, `{"result":{}}`, `{"result":null}`, `{"result":"1.5"}`, `{"result":`,
		everycall.Enveloped("[]"), everycall.Enveloped("{}"), refused("x-api-key header is required"), `{"message":1,"meta":null,"x":[[]],"result":[{}]}`,
		`{"result":[],"result":[]}`, `{"result":[]}x`, `{"result":[]}{}`, "{\"message\":\"\xff\",\"result\":[]}", `{"message":"\ud800"}`,
		`{"meta":{"\u0043` + canary[1:] + `":1},"result":{}}`,
		`{"result":{"` + canary + `":1},"meta":{"\u0043` + canary[1:] + `":"` + canary + `"},"message":"` + canary + `"}`,
		`{"result":[{"symbol":"BTC","usd":"1","eur":2},{"coin":{"symbol":"ETH"},"USD":1,"EUR":2}]}`, `{"result":{"BTC":{"usd":1,"eur":2}}}`,
		`{"result":{"usd":{"BTC":1},"eur":{"BTC":2}}}`, `{"result":{"USDT":"1","BTC":{"available":2}}}`, `{"result":[1,"2",{"amount":3}]}`,
		everycall.Enveloped(strings.Replace(everycall.WithdrawalJSON, `"1.5"`, `2e-3`, 1)), everycall.Enveloped(strings.Replace(everycall.WithdrawalJSON, `"1.5"`, `null`, 1)),
		everycall.Enveloped(strings.Replace(everycall.PairJSON, `"confirmation":20`, `"confirmation":1e2`, 1)), everycall.Enveloped("[" + everycall.PairJSON + "," + everycall.PairJSON + "]"),
		everycall.Enveloped(strings.NewReplacer(`"1.5"`, `"Infinity"`, `"swapFee":`, `"was":`).Replace(everycall.PairJSON)),
		strings.Repeat(`{"result":`, 50) + strings.Repeat("[", 50), "<html>" + canary,
	}
	for _, s := range everycall.All() {
		all = append(all, s.Body())
	}
	return all
}

// Whatever the body of a response is, each method returns a result or an error and never both, with no key in either, in
// bounded memory, and no amount that is not in the body.
func FuzzResponse(f *testing.F) {
	for _, seed := range bodySeeds() {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	a := &answer{}
	c := a.client(f)
	f.Fuzz(func(t *testing.T, body []byte, success bool) {
		a.body = body
		for _, s := range everycall.All() {
			if a.status = 400; success {
				a.status = s.Status
			}
			var (
				response gateway.Response
				result   any
				err      error
			)
			allocated := measure.Allocated(func() { result, err = s.Do(t.Context(), c, everycall.Documented(), gateway.WithResponse(&response)) })
			require.Less(t, allocated, uint64(8<<20+100*len(body)), s.Name)
			require.Empty(t, invariant.Broken(result, err))
			require.False(t, invariant.ShowsKey(response))
			require.LessOrEqual(t, len(response.Message), 1<<10, s.Name)
			require.True(t, response.Meta == nil || json.Valid(response.Meta), s.Name)
			require.True(t, response.Result == nil || json.Valid(response.Result), s.Name)
			if err == nil {
				require.True(t, success, s.Name)
				require.NotNil(t, response.Result, s.Name)
				assertAmountsAreIn(t, s, body, result)
				continue
			}
			require.LessOrEqual(t, len(err.Error()), 4<<10, s.Name)
			if refusal, ok := errors.AsType[*gateway.APIError](err); s.Writes() && !(ok && !success) {
				require.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err), "%s: %v", s.Name, refusal)
			}
		}
	})
}

// An exactAmount is an amount with its digits, so that amounts can be compared without arithmetic, which may not end.
type exactAmount struct {
	digits   string
	exponent int32
}

func exact(amount decimal.Decimal) exactAmount {
	return exactAmount{amount.Coefficient().String(), amount.Exponent()}
}

// assertAmountsAreIn asserts that each amount of a result is a text or number of the body, as encoding/json reads it: none
// is zero because it was not read.
func assertAmountsAreIn(t *testing.T, s everycall.Call, body []byte, result any) {
	t.Helper()
	found := amountsOf(reflect.ValueOf(result))
	if len(found) == 0 {
		return
	}
	inBody := map[exactAmount]bool{}
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	dec.UseNumber()
	for token, err := dec.Token(); err == nil; token, err = dec.Token() {
		if amount, err := decimal.NewFromString(fmt.Sprint(token)); err == nil {
			inBody[exact(amount)] = true
		}
	}
	for _, amount := range found {
		assert.True(t, inBody[exact(amount)], "%s: %v·10^%d is not in %q", s.Name, amount.Coefficient(), amount.Exponent(), body)
	}
}

// amountsOf are all amounts within a value.
func amountsOf(v reflect.Value) (all []decimal.Decimal) {
	if !v.IsValid() || !v.CanInterface() {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		return amountsOf(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, amountsOf(v.Index(i))...)
		}
	case reflect.Struct:
		switch amount := v.Interface().(type) {
		case decimal.Decimal:
			return []decimal.Decimal{amount}
		case gateway.CoinNetwork:
			for name, field := range map[string]decimal.Decimal{
				"withdrawalFee": amount.WithdrawalFee, "swapFee": amount.SwapFee, "minWithdraw": amount.MinWithdraw,
				"maxWithdraw": amount.MaxWithdraw, "coin.minAmount": amount.Coin.MinAmount,
			} {
				if !slices.Contains(amount.Missing, name) {
					all = append(all, field)
				}
			}
			return all
		case gateway.InvoiceRequest, gateway.InvoiceDetails:
			return nil // the caller's own, or those of a decoder
		case decimal.NullDecimal:
			if !amount.Valid {
				return nil // there is none, and it says so
			}
		}
		for _, field := range v.Fields() {
			all = append(all, amountsOf(field)...)
		}
	}
	return all
}

// Wherever a service repeats the key, it is in nothing that the client hands out, not even most of it. Package redact tests
// how a key may be spelled.
func TestSecret_echoed(t *testing.T) {
	escaped := strings.NewReplacer("C", `\u0043`, "-", `\u002D`, "5", `\u0035`).Replace(canary)
	pad := func(n int) string { return strings.Repeat("p", n) }
	requested, _ := json.Marshal(`{"apiKey":"` + canary + `"}`)
	header := http.Header{ // also across the lengths at which they are cut
		"X-Request-Id": {"req-" + canary}, "X-Correlation-Id": {pad(1<<10-20) + canary}, "Content-Type": {pad(256-20) + canary},
		"Location": {"/?apiKey=" + canary}, "Server": {canary},
	}
	for _, body := range []string{
		refused("bad key " + canary), refused(pad(1<<10-10) + canary), `{"error":"bad key ` + canary + `"}`,
		everycall.Enveloped(`{"request":` + string(requested) + `}`), `{"message":"m","result":[],"meta":{"` + canary + `":"` + canary + `"}}`,
		`{"` + canary + `":1,"result":` + everycall.PairJSON + `}`,
		everycall.Enveloped(`[{"symbol":"` + escaped + `","usd":"1","eur":"1","balance":"1"}]`), everycall.Enveloped(`{"status":"` + escaped + `","fee":null}`),
		everycall.Enveloped(`[{"symbol":"` + canary + `","usd":"1","eur":"1","balance":"1"}]`), everycall.Enveloped(`{"BTC":{"usd":"` + canary + `","eur":"1"}}`),
		everycall.Enveloped(strings.Replace(everycall.PairJSON, `"id":"`, `"id":"`+canary, 1)),
		everycall.Enveloped(strings.Replace(everycall.WithdrawalJSON, `"1.5"`, `"`+canary+`"`, 1)),
		everycall.Enveloped(strings.Replace(everycall.WithdrawalJSON, `"destination":"`, `"destination":"`+escaped, 1)),
		"<html>" + pad(8<<10-16) + canary + pad(9000), everycall.Enveloped(`"` + pad(8<<10-60) + canary + `"`), "<html>" + pad(105) + canary, "<html>" + canary[:len(canary)-1],
	} {
		for _, status := range []int{200, 302, 400} {
			c := (&answer{status, header, []byte(body)}).client(t)
			for _, one := range everycall.All() {
				var response gateway.Response
				got, err := one.Do(t.Context(), c, everycall.Documented(), gateway.WithResponse(&response))
				assert.Empty(t, invariant.Broken(got, err))
				for _, v := range []any{got, err, response} {
					assert.Empty(t, invariant.Shows(v, canary[:16]), "%s, %d: %s", one.Name, status, body)
				}
			}
		}
	}
}

// The cost of a response is bounded by its size, whatever its form: SECURITY.md has 50 MB. The test is not parallel,
// because it measures.
func TestCost(t *testing.T) {
	const megabyte = 1 << 20
	var members strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&members, `"%d":1,`, i)
	}
	record, name := "{"+strings.TrimSuffix(members.String(), ",")+"}", strings.Repeat("n", megabyte/4)
	ones := "[" + strings.Repeat("1,", megabyte/2) + "1]"
	encoded := strings.Repeat("%"+canary[:len(canary)-1], 2*megabyte/len(canary)) + canary
	list := func(begin, format, end string, n int) string { // the items are those of the shortest names
		all := make([]string, n)
		for i := range all {
			all[i] = strings.Replace(format, "N", shortName(i), 1)
		}
		return everycall.Enveloped(begin + strings.Join(all, ",") + end)
	}
	const rates, invoice = "ExchangeRates", "CreateInvoice"
	for _, tt := range []struct {
		name, method, body string
		most               int // bytes for each byte of the body
	}{
		{"a long name with many members under it", rates, everycall.Enveloped(`{"` + name + `":` + record + `}`), 30},
		{"a long name with many elements under it", invoice, everycall.Enveloped(`{"` + name + `":` + ones + `}`), 10},
		{"many numbers where records are expected", rates, everycall.Enveloped(ones), 12},
		{"rates by long names", rates, everycall.Enveloped(`{"usd":{"` + name + `":` + record + `},"eur":{}}`), 14},
		{"many records without an amount", rates, everycall.Enveloped("[" + strings.Repeat("{},", megabyte/4) + "{}]"), 12},
		{"a text in escapes", rates, everycall.Enveloped(`["` + strings.Repeat(`\u0041`, megabyte/3) + `"]`), 14},
		{"a text with the key", invoice, everycall.Enveloped(`["` + canary + strings.Repeat("a", 2*megabyte) + `"]`), 10},
		{"a million levels; 10,000 are read", invoice, everycall.Enveloped(strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)), 6},
		{"a message in which the key may be anywhere", rates, `{"message":"` + encoded + `","result":[],"meta":{}}`, 8},
		{"a meta in which the key may be anywhere", invoice, `{"message":"no","result":[],"meta":["` + encoded + `"]}`, 8},
		{"100,000 names with a number", rates, list(`{`, `"N":1`, `}`, 99_990), 60}, // 50 MB
		{"100,000 names with a number in an invoice", invoice, list(`{`, `"N":1`, `}`, 99_990), 50},
		{"200,000 names with a number", invoice, list(`{`, `"N":1`, `}`, 200_000), 25},
		{"50,000 numbers in records", rates, list(`[`, `{"N":1}`, `]`, 49_990), 40},
		{"rates of 33,000 coins", rates, list(`{`, `"N":{"usd":1,"eur":2}`, `}`, 33_330), 40},
		{"balances of 33,000 coins", "Balance", list(`[`, `{"coin":"N","amount":1}`, `]`, 33_330), 40},
	} {
		s := everycall.Named(tt.method)
		c := (&answer{status: s.Status, body: []byte(tt.body)}).client(t, gateway.WithObserver(gateway.Observer{}))
		var result any
		var err error
		cost := measure.Allocated(func() { result, err = s.Do(t.Context(), c, everycall.Documented()) })
		assert.Empty(t, invariant.Broken(result, err))
		assert.Less(t, cost, uint64(measure.Slack())*uint64(tt.most*len(tt.body)), "%s: %.100v", tt.name, err)
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
