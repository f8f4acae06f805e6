package gateway_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// codecs are the packages that a program could use.
var codecs = map[string]struct {
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
}{
	"encoding/json": {json.Marshal, json.Unmarshal},
	"version 2": {
		func(v any) ([]byte, error) { return jsonv2.Marshal(v) },
		func(text []byte, v any) error { return jsonv2.Unmarshal(text, v) },
	},
}

// A record of the gateway is read, and written as it came: the documented names in the
// documented order, and every digit.
func TestRecords_JSON(t *testing.T) {
	t.Parallel()
	assertSameJSON[gateway.CoinNetwork](t, pairJSON)
	assertSameJSON[gateway.Network](t, networkJSON)
	assertSameJSON[gateway.Coin](t, coinJSON)
	assertSameJSON[gateway.Withdrawal](t, withdrawalJSON)
	assertSameJSON[[]gateway.CoinNetwork](t, "["+pairJSON+","+pairJSON+"]")
	assertSameJSON[[]*gateway.Withdrawal](t, "["+withdrawalJSON+",null]")
	assertSameJSON[gateway.Withdrawal](t, written(withdrawalFields, "amount", `"15e2"`))
	assertSameJSON[gateway.Withdrawal](t, written(withdrawalFields, "status", `"HELD"`))
	assertSameJSON[gateway.Coin](t, written(coinFields, "created_at", ""))
}

func assertSameJSON[T any](t *testing.T, text string) {
	t.Helper()
	for name, codec := range codecs {
		var value, again T
		require.NoError(t, codec.unmarshal([]byte(text), &value), name)
		got, err := codec.marshal(value)
		require.NoError(t, err, name)
		assert.Equal(t, strings.ReplaceAll(text, ".000Z", "Z"), string(got), name)
		require.NoError(t, codec.unmarshal(got, &again), name)
		assert.Equal(t, value, again, name)
	}
}

// A record is read from JSON as strictly as by the client, on every path into the type, and
// an amount is never zero because it is missing.
func TestRecords_JSON_strict(t *testing.T) {
	t.Parallel()
	assertStrictJSON(t, pairFields, func(text string) error { return json.Unmarshal([]byte(text), new(gateway.CoinNetwork)) })
	assertStrictJSON(t, pairFields, func(text string) error { return json.Unmarshal([]byte("["+text+"]"), new([]gateway.CoinNetwork)) })
	assertStrictJSON(t, networkFields, func(text string) error { return json.Unmarshal([]byte(text), new(gateway.Network)) })
	assertStrictJSON(t, coinFields, func(text string) error { return json.Unmarshal([]byte(text), new(gateway.Coin)) })
	assertStrictJSON(t, coinFields, func(text string) error {
		return json.Unmarshal([]byte(written(pairFields, "coin", text)), new(gateway.CoinNetwork))
	})
	assertStrictJSON(t, withdrawalFields, func(text string) error {
		return json.NewDecoder(strings.NewReader(`{"result":` + text + `}`)).Decode(&struct{ Result gateway.Withdrawal }{})
	})
}

func assertStrictJSON(t *testing.T, fields []wireField, read func(text string) error) {
	t.Helper()
	require.NoError(t, read(strings.Replace(written(fields, "", ""), "{", `{"unknown":[{}],`, 1)))
	for _, whole := range []string{"null", "[]", `"x"`, "{}"} {
		require.Error(t, read(whole))
	}
	for _, f := range fields {
		for _, value := range rightValues[f.kind] {
			require.NoError(t, read(written(fields, f.name, value)), "%s: %s", f.name, value)
		}
		if f.kind == "time" {
			continue
		}
		for _, value := range append(wrongValues[f.kind], "") {
			if value != `"other-than-asked"` {
				require.ErrorContains(t, read(written(fields, f.name, value)), "/"+f.name, "%s: %s", f.name, value)
			}
		}
	}
}

// What the client returns beside the records of the gateway goes through JSON as it is.
func TestResults_JSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, tt := range []struct {
		value any
		want  string
	}{
		{gateway.Rate{CoinSymbol: "BTC", USD: rateOf("64123.50")}, `{"coinSymbol":"BTC","usd":"64123.50","eur":null}`},
		{gateway.ExchangeRates{
			Rates: []gateway.Rate{{CoinSymbol: "BTC", USD: rateOf("1"), EUR: rateOf("0.90")}}, FetchedAt: at, Raw: json.RawMessage(`[1.50,null]`),
		}, `{"rates":[{"coinSymbol":"BTC","usd":"1","eur":"0.90"}],"fetchedAt":"2024-01-02T03:04:05.000000006Z","raw":[1.50,null]}`},
		{gateway.ExchangeRates{Rates: []gateway.Rate{}, FetchedAt: at}, `{"rates":[],"fetchedAt":"2024-01-02T03:04:05.000000006Z"}`},
		{gateway.BalanceAmount{CoinSymbol: "USDT", Amount: decimal.New(25070, -2)}, `{"coinSymbol":"USDT","networkName":"","amount":"250.70"}`},
		{gateway.Balance{
			Amounts: []gateway.BalanceAmount{{CoinSymbol: "USDT", NetworkName: "Tron", Amount: decimal.New(1, 3)}}, Raw: json.RawMessage(`"1e3"`),
		}, `{"amounts":[{"coinSymbol":"USDT","networkName":"Tron","amount":"1e3"}],"raw":"1e3"}`},
		{gateway.Balance{Amounts: []gateway.BalanceAmount{}}, `{"amounts":[]}`},
		{gateway.Invoice{OrderID: "A-17", Raw: json.RawMessage(`{"n":1.0}`), CreatedAt: at}, `{"orderId":"A-17","raw":{"n":1.0},"replayed":false,"createdAt":"2024-01-02T03:04:05.000000006Z"}`},
		{gateway.Invoice{OrderID: "A-17", Replayed: true}, `{"orderId":"A-17","replayed":true}`},
		{gateway.InvoiceRequest{OrderID: "A-17", Price: decimal.New(1050, -2), Amount: decimal.New(1, 1), CoinSymbol: "BTC"}, `{"orderId":"A-17","price":"10.50","amount":"1e1","coinSymbol":"BTC"}`},
	} {
		for name, codec := range codecs {
			text, err := codec.marshal(tt.value)
			require.NoError(t, err, name)
			assert.Equal(t, tt.want, string(text), name)
			again := reflect.New(reflect.TypeOf(tt.value))
			require.NoError(t, codec.unmarshal(text, again.Interface()), name)
			assert.Equal(t, tt.value, again.Elem().Interface(), name)
		}
	}
}

// JSON that is not what the client writes is an error, and so is a value that could not be
// read again.
func TestResults_JSON_refused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, reason string
		into         any
	}{
		{ratesJSON, "is an array", new(gateway.ExchangeRates)},
		{`{"BTC":{"usd":"1","eur":"2"}}`, "/rates is missing", new(gateway.ExchangeRates)},
		{`{"rates":[{"coinSymbol":"BTC","usd":"1"}],"fetchedAt":"2024-01-02T03:04:05Z"}`, "/rates/0/eur is missing", new(gateway.ExchangeRates)},
		{`{"coinSymbol":"BTC","usd":"","eur":null}`, "/usd is empty", new(gateway.Rate)},
		{`{"amounts":null}`, "/amounts is null", new(gateway.Balance)},
		{`{"amounts":[{"coinSymbol":"","networkName":"","amount":null}]}`, "/amounts/0/amount is null", new(gateway.Balance)},
		{balanceJSON[1 : len(balanceJSON)-1], "/amount is missing", new(gateway.BalanceAmount)},
		{invoiceJSON, "/orderId is missing", new(gateway.Invoice)},
		{`{"orderId":"","replayed":true}`, "/orderId is empty", new(gateway.Invoice)},
		{`{"orderId":"A-17","price":"1"}`, "/amount is missing", new(gateway.InvoiceRequest)},
		{`{"orderId":"A-17","price":null,"amount":"1"}`, "/price is null", new(gateway.InvoiceRequest)},
	} {
		before := fmt.Sprint(tt.into)
		assert.ErrorContains(t, json.Unmarshal([]byte(tt.text), tt.into), tt.reason)
		assert.Equal(t, before, fmt.Sprint(tt.into))
	}
	absurd := decimal.New(1, 1000)
	for _, value := range []any{
		gateway.CoinNetwork{MaxWithdraw: absurd},
		gateway.CoinNetwork{Coin: gateway.Coin{MinAmount: absurd}},
		gateway.Coin{Name: "\xff"},
		gateway.Rate{USD: decimal.NewNullDecimal(absurd)},
		gateway.Balance{Amounts: []gateway.BalanceAmount{{Amount: absurd}}},
		gateway.InvoiceRequest{Price: absurd},
		gateway.Invoice{Raw: json.RawMessage("nope")},
		gateway.Network{CreatedAt: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		_, err := json.Marshal(value)
		assert.Error(t, err, "%T", value)
	}
}
