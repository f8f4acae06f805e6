package wire

import (
	"bytes"
	"encoding/json"
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

// bodySeeds are bodies of responses, good and bad, for every method.
func bodySeeds() []string {
	all := []string{
		``, ` `, "\ufeff", `null`, `[]`, `{}`, `"x"`, `{"result":[]}`, `{"result":{}}`, `{"result":null}`, `{"result":"1.5"}`, `{"result":`,
		everycall.Enveloped("[]"), everycall.Enveloped("{}"), refused("x-api-key header is required"), `{"message":1,"meta":null,"x":[[]],"result":[{}]}`,
		`{"result":[],"result":[]}`, `{"result":[]}x`, `{"result":[]}{}`, "{\"message\":\"\xff\",\"result\":[]}", `{"message":"\ud800"}`,
		`{"meta":{"\u0043` + canary[1:] + `":1},"result":{}}`,
		`{"result":{"` + canary + `":1},"meta":{"\u0043` + canary[1:] + `":"` + canary + `"},"message":"` + canary + `"}`,
		`{"result":[{"symbol":"BTC","usd":"1","eur":2},{"coin":{"symbol":"ETH"},"USD":1,"EUR":2}]}`,
		`{"result":{"BTC":{"usd":1,"eur":2}}}`, `{"result":{"usd":{"BTC":1},"eur":{"BTC":2}}}`, `{"result":{"usd":1}}`, `{"result":{"usd":{},"eur":{"BTC":1}}}`,
		`{"result":{"USDT":"1","BTC":{"available":2,"network":{"name":"n"}}}}`, `{"result":{"balance":{}}}`, `{"result":[1,"2",{"amount":3}]}`,
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

// Whatever the body of a response is, each method returns a result or an error and
// never both, with no key in either, in bounded memory, and no amount that is not in
// the body.
func FuzzResponse(f *testing.F) {
	for _, seed := range bodySeeds() {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	transport := &answer{}
	c := answering(f, transport)
	f.Fuzz(func(t *testing.T, body []byte, success bool) {
		transport.body = body
		for _, s := range everycall.All() {
			if transport.status = 400; success {
				transport.status = s.Status
			}
			var (
				response gateway.Response
				result   any
				err      error
			)
			allocated := measure.Allocated(func() { result, err = s.Do(t.Context(), c, everycall.Documented(), gateway.WithResponse(&response)) })
			require.Less(t, allocated, uint64(8<<20+100*len(body)), s.Name)
			require.Empty(t, invariant.Broken(result, err))
			assertErrorBounds(t, s, transport.status, err)
			assertResponse(t, s, body, response, err)
			assertAmountsAreIn(t, s, body, result)
		}
	})
}

// assertErrorBounds asserts the size of an error, and the outcome of a write's error.
func assertErrorBounds(t *testing.T, s everycall.Call, status int, err error) {
	t.Helper()
	if err == nil {
		require.Less(t, status, 300, "%s: a success with status %d", s.Name, status)
		return
	}
	require.LessOrEqual(t, len(err.Error()), 4<<10, s.Name)
	if status >= 300 && gateway.OutcomeOf(err) != gateway.OutcomeUnknown {
		var refusal *gateway.APIError
		require.ErrorAs(t, err, &refusal, s.Name)
		require.LessOrEqual(t, len(refusal.Body), 8<<10, s.Name)
		return
	}
	if s.Writes() {
		require.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err), s.Name)
	}
}

func assertResponse(t *testing.T, s everycall.Call, body []byte, response gateway.Response, err error) {
	t.Helper()
	require.False(t, invariant.ShowsKey(response))
	require.LessOrEqual(t, len(response.Message), 1<<10, s.Name)
	require.True(t, response.Meta == nil || json.Valid(response.Meta), s.Name)
	require.True(t, response.Result == nil || json.Valid(response.Result), s.Name)
	if err == nil {
		require.True(t, json.Valid(bytes.TrimPrefix(body, []byte("\ufeff"))), "%s: read a text that is not JSON: %q", s.Name, body)
		require.NotNil(t, response.Result, s.Name)
	}
}

// An exactAmount is an amount with its digits, so that amounts can be compared without
// arithmetic, which may not end.
type exactAmount struct {
	digits   string
	exponent int32
}

func exact(amount decimal.Decimal) exactAmount {
	return exactAmount{amount.Coefficient().String(), amount.Exponent()}
}

// assertAmountsAreIn asserts that each amount of a result is a text or number of the
// body, as encoding/json reads it: none is zero because it was not read.
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
		text, isText := token.(string)
		if number, ok := token.(json.Number); ok {
			text = number.String()
		} else if !isText {
			continue
		}
		if amount, err := decimal.NewFromString(text); err == nil {
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
