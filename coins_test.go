package gateway_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/fields"
)

// A wireField is a member of a record as docs/interface.md lists it.
type wireField struct{ name, good string }

// The fields of the records, as docs/interface.md has them.
var (
	networkFields    = documentedFields(fields.Network, networkJSON)
	coinFields       = documentedFields(fields.Coin, coinJSON)
	pairFields       = documentedFields(fields.Pair, pairJSON)
	withdrawalFields = documentedFields(fields.Withdrawal, withdrawalJSON)
)

// documentedFields are the fields of a record, with the values that a record of text has.
func documentedFields(table *fields.Table, record string) (all []wireField) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(record), &members); err != nil {
		panic(err)
	}
	for _, f := range table.Fields {
		all = append(all, wireField{f.Name, string(members[f.Name])})
	}
	return all
}

// written writes a record, with another value for one of its members, or
// without it when the value is empty. No name changes nothing.
func written(fields []wireField, name, value string) string {
	var members []string
	for _, f := range fields {
		if f.name == name {
			f.good = value
		}
		if f.good != "" {
			members = append(members, strconv.Quote(f.name)+":"+f.good)
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// needless are the fields of pairs and coins that a payment does not need: they may be null, and in a list those of
// pairs may be missing in a record.
var needless = []string{"withdrawalFee", "swapFee", "minWithdraw", "maxWithdraw", "withdrawable", "confirmation", "arrivalTime", "expirationTime"}

// Each field of each record is required and of its kind; only a time is lenient, and what a payment does not need. In a
// list the record is skipped. What each kind accepts is tested in package doc.
// I-52, I-53, I-145
func TestRecords_fields(t *testing.T) {
	t.Parallel()
	same := func(record string) string { return record }
	alone := func(record string) string { return "[" + record + "]" }
	second := func(record string) string { return "[" + pairJSON + "," + record + "]" }
	inPair := func(name string) func(string) string {
		return func(record string) string { return written(pairFields, name, record) }
	}
	for _, record := range []struct {
		subject string
		place   string // the pointer to the record
		fields  []wireField
		wrap    func(record string) string // the result that holds it
	}{
		{"CoinNetwork", "/result", pairFields, same},
		{"CoinNetwork", "/result/network", networkFields, inPair("network")},
		{"CoinNetwork", "/result/coin", coinFields, inPair("coin")},
		{"CoinNetwork", "/result/0", pairFields, alone},
		{"CoinNetworkBySymbol", "/result", pairFields, same},
		{"CoinNetworksOf", "/result", pairFields, same},
		{"CoinNetworksOf", "/result/1", pairFields, second},
		{"CoinNetworks", "/result/1", pairFields, second},
		{"CoinNetworks", "/result/1/network", networkFields, func(r string) string { return second(inPair("network")(r)) }},
		{"CoinNetworks", "/result/1/coin", coinFields, func(r string) string { return second(inPair("coin")(r)) }},
		{"Withdrawal", "/result", withdrawalFields, same},
		{"Withdrawal", "/result/0", withdrawalFields, alone},
	} {
		for _, field := range record.fields {
			t.Run(fmt.Sprintf("%s %s/%s", record.subject, record.place, field.name), func(t *testing.T) {
				t.Parallel()
				s, inList, assertWrong := subjectNamed(record.subject), strings.HasPrefix(record.place, "/result/1"), assertNotUnderstood
				if inList {
					assertWrong = assertLeftOut
				}
				isNeedless, isTime := slices.Contains(needless, field.name), strings.HasSuffix(field.name, "_at")
				mayBeNull := isNeedless || isTime || strings.HasSuffix(record.place, "/coin") && field.name == "name"
				mustHaveText := strings.Trim(field.good, `"0123456789.`) == "" ||
					slices.Contains([]string{"id", "symbol", "networkId", "coinId", "status", "withdrawRequestId"}, field.name)
				for value, right := range map[string]bool{
					"":     isTime || isNeedless && inList, // it is missing
					"null": mayBeNull,
					`[7]`:  isTime,
					`""`:   isTime || field.good[0] == '"' && !mustHaveText,
				} {
					body := enveloped(record.wrap(written(record.fields, field.name, value)))
					if !right {
						assertWrong(t, s, body, record.place+"/"+field.name)
						continue
					}
					result, err := s.call(t.Context(), cannedClient(t, s.status, body))
					require.NoError(t, err, "%s: %s", field.name, value)
					assertInvariants(t, result, err)
				}
			})
		}
	}
}

// assertLeftOut asserts that a listing is read without the one record that is wrong.
func assertLeftOut(t testing.TB, s subject, body, pointer string, reasons ...string) {
	t.Helper()
	var response gateway.Response
	result, err := s.call(t.Context(), cannedClient(t, s.status, body), gateway.WithResponse(&response))
	assertInvariants(t, result, err)
	require.NoError(t, err)
	assert.NotEmpty(t, result)
	require.Len(t, response.Skipped, 1)
	assert.Equal(t, pointer, response.Skipped[0].Pointer)
	for _, reason := range reasons {
		assert.Contains(t, response.Skipped[0].Reason, reason)
	}
}

// A missing field takes a pair off sale only if a payment needs it; a missing field of withdrawals allows none.
// I-52
func TestClient_CoinNetworks_needless(t *testing.T) {
	t.Parallel()
	fields := slices.Clone(pairFields)
	for i := range fields {
		if fields[i].name == "withdrawable" {
			fields[i].good = "true"
		}
	}
	whole := written(fields, "", "")
	for _, name := range needless {
		for value, pointer := range map[string]string{"null": "/result/1/" + name, "": "/result/1"} {
			var w recorder
			got, err := cannedClient(t, 200, listing(whole, written(fields, name, value)), w.option()).CoinNetworks(t.Context())
			require.NoError(t, err, name)
			require.Len(t, got, 2)
			assert.True(t, got[0].Withdrawable)
			used := slices.Contains([]string{"withdrawalFee", "minWithdraw", "maxWithdraw", "withdrawable"}, name)
			assert.Equal(t, !used, got[1].Withdrawable, name)
			assert.Equal(t, []gateway.Drift{{"coin_networks", pointer, gateway.DriftUnexpectedValue, ""}}, w.drifts)
		}
		record := written(fields, name, "")
		assertNotUnderstood(t, subjectNamed("CoinNetworks"), listing(record, record), "/result/"+name, "is missing in every record")
	}
}

// The report about a skipped record.
func TestClient_CoinNetworks_skipped(t *testing.T) {
	t.Parallel()
	const tron, minimum, comma = "Tron (TRC20)", "is null, not an amount", `"12,5" is not a decimal number`
	limit := func(value string) string { return written(pairFields, "maxWithdraw", value) }
	for _, tt := range []struct {
		record string
		want   gateway.Skipped
	}{
		{written(pairFields, "coin", written(coinFields, "minAmount", "null")), gateway.Skipped{"/result/1/coin/minAmount", "USDT", tron, pairID, minimum}},
		{limit(`"12,5"`), gateway.Skipped{"/result/1/maxWithdraw", "USDT", tron, pairID, comma}},
		{written(pairFields, "coin", "null"), gateway.Skipped{"/result/1/coin", "", tron, pairID, "is null, not an object"}},
		{written(pairFields, "network", written(networkFields, "name", "")), gateway.Skipped{"/result/1/network/name", "USDT", "", pairID, "is missing"}},
		// what could forge a line in a log
		{limit(`"\u2028x"`), gateway.Skipped{"/result/1/maxWithdraw", "USDT", tron, pairID, `\"\u2028x\" is not a decimal number`}},
		{`"end"`, gateway.Skipped{"/result/1", "", "", "", `"end" is text, not an object`}},
		{limit(`"` + canary + `"`), gateway.Skipped{"/result/1/maxWithdraw", "USDT", tron, pairID, `"[REDACTED]" is not a decimal number`}},
	} {
		for _, s := range []subject{subjectNamed("CoinNetworks"), subjectNamed("CoinNetworksOf")} {
			body := enveloped("[" + pairJSON + "," + tt.record + "," + pairJSON + "]")
			response := gateway.Response{Skipped: []gateway.Skipped{{}}}
			got, err := s.call(t.Context(), cannedClient(t, 200, body), gateway.WithResponse(&response))
			require.NoError(t, err)
			assert.Len(t, got, 2)
			assert.Equal(t, []gateway.Skipped{tt.want}, response.Skipped)
			_, err = s.call(t.Context(), cannedClient(t, 200, s.body()), gateway.WithResponse(&response))
			require.NoError(t, err)
			assert.Nil(t, response.Skipped)
		}
	}
	bad := written(pairFields, "depositable", "null")
	// If none can be read, the first is an error. One record alone is not skipped.
	assertNotUnderstood(t, subjectNamed("CoinNetworks"), enveloped("["+bad+",7]"), "/result/0/depositable", "is null, not a boolean")
	assertNotUnderstood(t, subjectNamed("CoinNetworksOf"), enveloped(bad), "/result/depositable", "is null, not a boolean")
}

// Every field goes where it belongs, with exactly its value, and none is unknown.
// I-41, I-49, I-57, I-58, I-59, I-60, I-61, I-62, I-63, I-64, I-65, I-66, I-67, I-68, I-69, I-70,
// I-71, I-72, I-73, I-77, I-79, I-80, I-81, I-82, I-83, I-84, I-85, I-86, I-87, I-88, I-89, I-90,
// I-91, I-131, I-132, I-133, I-134, I-135, I-136, I-137, I-138, I-146, I-147
func TestRecords_values(t *testing.T) {
	t.Parallel()
	created, updated := time.Date(2023, 5, 14, 9, 21, 43, 0, time.UTC), time.Date(2023, 6, 1, 0, 0, 0, 0, time.UTC)
	pair := gateway.CoinNetwork{
		ID:            pairID,
		WithdrawalFee: decimal.RequireFromString("1.5"),
		SwapFee:       decimal.RequireFromString("0.000000010000000001"),
		MinWithdraw:   decimal.RequireFromString("10"),
		MaxWithdraw:   decimal.RequireFromString("123456789012345678901234.12345678"),
		Depositable:   true, Withdrawable: false,
		Confirmations: 20, ArrivalTime: 5, ExpirationTime: 60,
		NetworkID: "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33", CoinID: "5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44",
		CreatedAt: created, UpdatedAt: updated,
		Network: gateway.Network{
			ID: "1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33", Name: "Tron (TRC20)", IsActive: true,
			CreatedAt: created, UpdatedAt: updated,
		},
		Coin: gateway.Coin{
			ID: "5e3f7a90-1c2b-4d3e-8f4a-9b0c1d2e3f44", Name: "Tether", Symbol: "USDT", Precision: 6,
			MinAmount: decimal.RequireFromString("0.00000100"), IsActive: true,
			CreatedAt: created, UpdatedAt: updated,
		},
	}
	withdrawal := &gateway.Withdrawal{
		Status: gateway.WithdrawalPending, Destination: "TXYZ",
		Amount: decimal.RequireFromString("25.000001"), Fee: decimal.RequireFromString("1.5"),
		Coin: "USDT", Network: "Tron (TRC20)", WithdrawRequestID: requestID,
	}
	for name, want := range map[string]any{
		"CoinNetworks":        []gateway.CoinNetwork{pair},
		"CoinNetwork":         &pair,
		"CoinNetworkBySymbol": &pair,
		"CoinNetworksOf":      []gateway.CoinNetwork{pair},
		"Withdrawal":          withdrawal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := subjectNamed(name)
			var w recorder
			got, err := s.call(t.Context(), cannedClient(t, s.status, s.body(), w.option()))
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Empty(t, w.drifts)
			written, err := json.Marshal(got)
			require.NoError(t, err)
			got, err = s.call(t.Context(), cannedClient(t, s.status, enveloped(string(written)), w.option()))
			require.NoError(t, err, "a record is written with its documented names")
			assert.EqualExportedValues(t, want, got)
			assert.Empty(t, w.drifts)
		})
	}
}

// Which results each method accepts: a list, a record, or either.
// I-45, I-50, I-51
func TestRecords_listing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"CoinNetworks", "CoinNetworksOf"} {
		s := subjectNamed(name)
		got, err := s.call(t.Context(), cannedClient(t, 200, enveloped("[]")))
		require.NoError(t, err)
		assert.Equal(t, []gateway.CoinNetwork{}, got, "a listing of none is empty, not nil")
	}
	assertNotUnderstood(t, subjectNamed("CoinNetworks"), enveloped("{}"), "/result", "is an object, not an array")
	assertNotUnderstood(t, subjectNamed("CoinNetworks"), enveloped(pairJSON), "/result", "is an object, not an array")
	got, err := cannedClient(t, 200, enveloped(pairJSON)).CoinNetworksOf(t.Context(), "USDT")
	require.NoError(t, err)
	require.Len(t, got, 1, "one record is an array of one")
	assert.Equal(t, pairID, got[0].ID)
	for _, name := range []string{"CoinNetwork", "CoinNetworkBySymbol", "Withdrawal"} {
		s := subjectNamed(name)
		got, err := s.call(t.Context(), cannedClient(t, s.status, enveloped("["+s.result+"]")))
		require.NoError(t, err, "an array of one record is the record")
		assertInvariants(t, got, err)
		assertNotUnderstood(t, s, enveloped("["+s.result+","+s.result+"]"), "/result/0", "several records")
	}
}

// listing is the body of a response with these records.
func listing(pairs ...string) string { return enveloped("[" + strings.Join(pairs, ",") + "]") }

// A coin on two networks, and a network of two coins, are a record for each pair, in the order of the response.
// I-45, I-46, I-47
func TestClient_CoinNetworks_pairings(t *testing.T) {
	t.Parallel()
	want := []string{"2 USDT Tron", "1 USDT Ethereum", "3 ETH Ethereum"}
	var records, seen []string
	for _, pair := range want {
		of := strings.Fields(pair)
		records = append(records, strings.NewReplacer(pairID, of[0], "USDT", of[1], "Tron (TRC20)", of[2]).Replace(pairJSON))
	}
	pairs, err := cannedClient(t, 200, listing(records...)).CoinNetworks(t.Context())
	require.NoError(t, err)
	for _, p := range pairs {
		seen = append(seen, p.ID+" "+p.Coin.Symbol+" "+p.Network.Name)
	}
	assert.Equal(t, want, seen)
}

// Records are plain structs with the documented names. Amounts keep their value, and lose zeros at their end.
func TestRecords_JSON(t *testing.T) {
	t.Parallel()
	codecs := map[string]struct { // the packages that a program could use
		marshal   func(any) ([]byte, error)
		unmarshal func([]byte, any) error
	}{
		"encoding/json": {json.Marshal, json.Unmarshal},
		"version 2": {
			func(v any) ([]byte, error) { return jsonv2.Marshal(v) },
			func(text []byte, v any) error { return jsonv2.Unmarshal(text, v) },
		},
	}
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
		_, marshals := tt.value.(json.Marshaler)
		assert.False(t, marshals, "a struct around %T would inherit its method", tt.value)
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
