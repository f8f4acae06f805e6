package gateway_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
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

// Records are plain structs with the documented names. Amounts keep their value, and lose zeros at their end.
func TestRecords_JSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, tt := range []struct {
		value any
		want  string
	}{
		{
			gateway.Withdrawal{Status: "HELD", Destination: "T1", Amount: decimal.New(150, -2), Fee: decimal.New(15, 2), Coin: "USDT", Network: "Tron", WithdrawRequestID: "w-1"},
			`{"status":"HELD","destination":"T1","amount":"1.5","fee":"1500","coin":"USDT","network":"Tron","withdrawRequestId":"w-1"}`,
		},
		{gateway.Network{ID: "n", Name: "Tron", CreatedAt: at}, `{"id":"n","name":"Tron","isActive":false,"created_at":"2024-01-02T03:04:05.000000006Z"}`},
		{gateway.Coin{ID: "c", Symbol: "BTC", Precision: 8, MinAmount: decimal.New(1, -30)}, `{"id":"c","name":"","symbol":"BTC","precision":8,"minAmount":"0.000000000000000000000000000001","isActive":false}`},
		{gateway.Rate{CoinSymbol: "BTC", USD: rateOf("64123.50")}, `{"coinSymbol":"BTC","usd":"64123.5","eur":null}`},
		{
			gateway.ExchangeRates{Rates: []gateway.Rate{{CoinSymbol: "BTC", USD: rateOf("1"), EUR: rateOf("0.90")}}, FetchedAt: at, Raw: json.RawMessage(`[1.50,null]`)},
			`{"rates":[{"coinSymbol":"BTC","usd":"1","eur":"0.9"}],"fetchedAt":"2024-01-02T03:04:05.000000006Z","raw":[1.50,null]}`,
		},
		{
			gateway.Balance{Amounts: []gateway.BalanceAmount{{CoinSymbol: "USDT", NetworkName: "Tron", Amount: decimal.New(1, 3)}}, Raw: json.RawMessage(`"1e3"`)},
			`{"amounts":[{"coinSymbol":"USDT","networkName":"Tron","amount":"1000"}],"raw":"1e3"}`,
		},
		{gateway.Invoice{OrderID: "A-17", Raw: json.RawMessage(`{"n":1.0}`), CreatedAt: at}, `{"orderId":"A-17","raw":{"n":1.0},"replayed":false,"createdAt":"2024-01-02T03:04:05.000000006Z"}`},
		{gateway.InvoiceRequest{OrderID: "A-17", Price: decimal.New(1050, -2), Amount: decimal.New(1, 1), CoinSymbol: "BTC"}, `{"orderId":"A-17","price":"10.5","amount":"10","coinSymbol":"BTC"}`},
	} {
		for name, codec := range codecs {
			text, err := codec.marshal(tt.value)
			require.NoError(t, err, name)
			assert.Equal(t, tt.want, string(text), name)
			again := reflect.New(reflect.TypeOf(tt.value))
			require.NoError(t, codec.unmarshal(text, again.Interface()), name)
			text, err = codec.marshal(again.Elem().Interface())
			require.NoError(t, err, name)
			assert.Equal(t, tt.want, string(text), name)
		}
	}
}

// A record that is embedded leaves the members beside it as they are.
func TestRecords_JSON_embedded(t *testing.T) {
	t.Parallel()
	type stored struct {
		gateway.Withdrawal
		Note string `json:"note"`
	}
	text, err := json.Marshal(stored{gateway.Withdrawal{Coin: "BTC"}, "by hand"})
	require.NoError(t, err)
	var again stored
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, "BTC by hand", again.Coin+" "+again.Note)
	for _, record := range []any{
		gateway.CoinNetwork{},
		gateway.Coin{},
		gateway.Network{},
		gateway.Withdrawal{},
		gateway.Rate{},
		gateway.ExchangeRates{},
		gateway.Balance{},
		gateway.BalanceAmount{},
		gateway.Invoice{},
		gateway.InvoiceRequest{},
		gateway.Skipped{},
	} {
		_, marshals := record.(json.Marshaler)
		assert.False(t, marshals, "%T", record)
	}
}

// Records have the documented names, all of them and no others.
func TestRecords_JSON_names(t *testing.T) {
	t.Parallel()
	assertSameNames[gateway.CoinNetwork](t, pairJSON)
	assertSameNames[gateway.Coin](t, written(coinFields, "", ""))
	assertSameNames[gateway.Network](t, written(networkFields, "", ""))
	assertSameNames[gateway.Withdrawal](t, withdrawalJSON)
}

func assertSameNames[T any](t *testing.T, text string) {
	t.Helper()
	var record T
	require.NoError(t, json.Unmarshal([]byte(text), &record))
	got, err := json.Marshal(record)
	require.NoError(t, err)
	var want, written map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &want))
	require.NoError(t, json.Unmarshal(got, &written))
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(written)))
}
