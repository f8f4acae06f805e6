package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// needless are the fields of pairs that a payment does not need: they may be missing or unreadable, and are listed then.
var needless = []string{
	"withdrawalFee", "swapFee", "minWithdraw", "maxWithdraw", "withdrawable", "confirmation", "arrivalTime", "expirationTime", "networkId", "coinId",
	"created_at", "updated_at", "network.id", "network.created_at", "network.updated_at", "coin.name", "coin.created_at", "coin.updated_at",
}

// Each field of each record is required and of its kind, unless no payment needs it. In a list the record is skipped.
// Package doc tests what each kind accepts.
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
		within  string // the path of the record within the pair
		fields  []wireField
		wrap    func(record string) string // the result that holds it
	}{
		{"CoinNetwork", "/result", "", pairFields, same},
		{"CoinNetwork", "/result/network", "network.", networkFields, inPair("network")},
		{"CoinNetwork", "/result/coin", "coin.", coinFields, inPair("coin")},
		{"CoinNetwork", "/result/0", "", pairFields, alone},
		{"CoinNetworkBySymbol", "/result", "", pairFields, same},
		{"CoinNetworksOf", "/result", "", pairFields, same},
		{"CoinNetworksOf", "/result/1", "", pairFields, second},
		{"CoinNetworks", "/result/1", "", pairFields, second},
		{"CoinNetworks", "/result/1/network", "network.", networkFields, func(r string) string { return second(inPair("network")(r)) }},
		{"CoinNetworks", "/result/1/coin", "coin.", coinFields, func(r string) string { return second(inPair("coin")(r)) }},
		{"Withdrawal", "/result", "withdrawal.", withdrawalFields, same},
		{"Withdrawal", "/result/0", "withdrawal.", withdrawalFields, alone},
	} {
		for _, field := range record.fields {
			t.Run(fmt.Sprintf("%s %s/%s", record.subject, record.place, field.name), func(t *testing.T) {
				t.Parallel()
				s, path, assertWrong := subjectNamed(record.subject), record.within+field.name, assertNotUnderstood
				if strings.HasPrefix(record.place, "/result/1") {
					assertWrong = assertLeftOut
				}
				isAmount := strings.Trim(field.good, `"0123456789.`) == ""
				mustHaveText := isAmount || slices.Contains([]string{"id", "symbol", "networkId", "coinId", "status", "withdrawRequestId", "created_at", "updated_at"}, field.name)
				for _, value := range []string{"", "null", `[7]`, `""`, `"Infinity"`} {
					isText := field.good[0] == '"' && strings.HasPrefix(value, `"`) && !isAmount && !strings.HasSuffix(field.name, "_at")
					body := enveloped(record.wrap(written(record.fields, field.name, value)))
					switch {
					case isText && (value != `""` || !mustHaveText):
						continue
					case !slices.Contains(needless, path):
						assertWrong(t, s, body, record.place+"/"+field.name)
						continue
					}
					result, err := s.call(t.Context(), cannedClient(t, s.status, body))
					require.NoError(t, err, "%s: %s", path, value)
					assertInvariants(t, result, err)
					assert.Equal(t, []string{path}, lastPair(result).Missing, "%s: %s", path, value)
				}
			})
		}
	}
}

// lastPair is the pair, or the last of the pairs, that a method returns.
func lastPair(result any) *gateway.CoinNetwork {
	if pairs, ok := result.([]gateway.CoinNetwork); ok {
		return &pairs[len(pairs)-1]
	}
	return result.(*gateway.CoinNetwork)
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

// A field that no payment needs is zero and listed, if it is missing or cannot be read, also in every record; a field of
// withdrawals then allows none.
// I-52
func TestClient_CoinNetworks_missing(t *testing.T) {
	t.Parallel()
	fields := slices.Clone(pairFields)
	for i := range fields {
		if fields[i].name == "withdrawable" {
			fields[i].good = "true"
		}
	}
	whole := written(fields, "", "")
	for _, tt := range []struct{ name, value, reason string }{
		{"withdrawalFee", `"Infinity"`, `"Infinity" is not a decimal number`},
		{"withdrawalFee", `""`, `"" is empty`},
		{"minWithdraw", `null`, "is null, not an amount"},
		{"maxWithdraw", ``, "is missing"},
		{"swapFee", `"0.5%"`, `"0.5%" is not a decimal number`},
		{"withdrawable", `"no"`, `"no" is text, not a boolean`},
		{"confirmation", `1.5`, `1.5 is not an integer in range`},
		{"networkId", `null`, "is null, not text"},
		{"coinId", `7`, "7 is a number, not text"},
	} {
		var w recorder
		lacking := written(fields, tt.name, tt.value)
		got, err := cannedClient(t, 200, listing(whole, lacking, lacking), w.option()).CoinNetworks(t.Context())
		require.NoError(t, err, tt.name)
		require.Len(t, got, 3)
		assert.True(t, got[0].Withdrawable)
		assert.Nil(t, got[0].Missing)
		ofWithdrawals := slices.Contains([]string{"withdrawalFee", "minWithdraw", "maxWithdraw", "withdrawable"}, tt.name)
		assert.Equal(t, !ofWithdrawals, got[1].Withdrawable, tt.name)
		assert.Equal(t, []string{tt.name}, got[1].Missing)
		assert.Equal(t, got[1].Missing, got[2].Missing)
		assert.True(t, got[1].AcceptsPayments())
		assert.Equal(t, []gateway.Drift{{"coin_networks", "/result/1/" + tt.name, gateway.DriftUnexpectedValue, tt.reason}}, w.drifts)
		got, err = cannedClient(t, 200, listing(lacking, lacking)).CoinNetworks(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{tt.name}, got[0].Missing)
	}
	network := `{"name":"Tron (TRC20)","isActive":1}`
	coin := `{"id":"c","symbol":"USDT","precision":"6","minAmount":"1","isActive":"1"}`
	got, err := cannedClient(t, 200, enveloped(`{"id":"p","depositable":1,"network":`+network+`,"coin":`+coin+`}`)).CoinNetworkBySymbol(t.Context(), "USDT", "Tron (TRC20)")
	require.NoError(t, err)
	assert.Equal(t, slices.Sorted(slices.Values(needless)), got.Missing)
	assert.True(t, got.AcceptsPayments())
	assert.Equal(t, 6, got.Coin.Precision)
}

func TestCoinNetwork_AcceptsPayments(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		var pair gateway.CoinNetwork
		pair.Depositable, pair.Coin.IsActive, pair.Network.IsActive = n&1 != 0, n&2 != 0, n&4 != 0
		assert.Equal(t, n == 7, pair.AcceptsPayments(), "%+v", pair)
	}
}

// A lookup returns the requested pair: another coin is an error, another name of the network is drift.
func TestClient_lookups_mismatch(t *testing.T) {
	t.Parallel()
	btc := strings.NewReplacer(`"USDT"`, `"BTC"`, "Tron (TRC20)", "Bitcoin").Replace(pairJSON)
	const isBTC = `"BTC" is another record than the requested one: `
	bySymbol := func(symbol, network string) func(*gateway.Client) error {
		return func(c *gateway.Client) error {
			_, err := c.CoinNetworkBySymbol(context.Background(), symbol, network)
			return err
		}
	}
	of := func(c *gateway.Client) error { _, err := c.CoinNetworksOf(context.Background(), "USDT"); return err }
	for _, tt := range []struct {
		name, result string
		call         func(*gateway.Client) error
		pointer      string // of the error or of drift; empty for none
		reason       string // of an error; empty for none
	}{
		{"the same names", pairJSON, bySymbol("USDT", "Tron (TRC20)"), "", ""},
		{"names in another case", pairJSON, bySymbol("usdt", "TRON (trc20)"), "", ""},
		{"another name of the network", pairJSON, bySymbol("USDT", "TRC20"), "/result/network/name", ""},
		{"another name of the network, in an array", "[" + pairJSON + "]", bySymbol("USDT", "TRC20"), "/result/0/network/name", ""},
		{"another coin", btc, bySymbol("USDT", "Bitcoin"), "/result/coin/symbol", isBTC},
		{"another coin, in an array", "[" + btc + "]", bySymbol("USDT", "Tron"), "/result/0/coin/symbol", isBTC},
		{"another coin alone", btc, of, "/result/coin/symbol", isBTC},
		{"another coin among those of the symbol", "[" + pairJSON + "," + btc + "]", of, "/result", `/result: another record than the requested one: it is of the coin "BTC": `},
	} {
		var w recorder
		err := tt.call(cannedClient(t, 200, enveloped(tt.result), w.option()))
		assert.Equal(t, tt.reason != "", err != nil, tt.name)
		if tt.reason != "" {
			require.ErrorIs(t, err, gateway.ErrResponseMismatch, tt.name)
			assert.ErrorContains(t, err, tt.reason, tt.name)
			assert.Equal(t, tt.pointer, as[*gateway.DecodeError](t, err).Pointer, tt.name)
		}
		if tt.pointer == "" {
			assert.Empty(t, w.drifts, tt.name)
			continue
		}
		require.Len(t, w.drifts, 1, tt.name)
		assert.Equal(t, gateway.DriftMismatch, w.drifts[0].Kind, tt.name)
		assert.Equal(t, tt.pointer, w.drifts[0].Pointer, tt.name)
	}
}

// A record alone is a lookup's result without an envelope.
// I-50, I-51
func TestClient_lookups_bare(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"CoinNetwork", "CoinNetworkBySymbol", "CoinNetworksOf"} {
		s := subjectNamed(name)
		got, err := s.call(t.Context(), cannedClient(t, 200, pairJSON))
		require.NoError(t, err, name)
		assert.Equal(t, pairID, lastPair(got).ID)
		for body, reason := range map[string]string{
			"[" + pairJSON + "]":             ": is an array, not an object",
			`{"data":` + pairJSON + `}`:      "/result: is missing",
			`{"coin":{},"status":"success"}`: "/result: is missing",
			`{"coin":{},"network":{}}`:       "/coin/id: is missing",
			written(pairFields, "id", ""):    "/id: is missing",
			enveloped(`{"coin":1}`):          "/result/coin: is a number, not an object",
		} {
			_, err = s.call(t.Context(), cannedClient(t, 200, body))
			wrong := as[*gateway.DecodeError](t, err)
			assert.Equal(t, reason+"; WithCoinNetworkDecoder reads another form", wrong.Pointer+": "+wrong.Err.Error())
		}
	}
	_, err := cannedClient(t, 200, "["+pairJSON+"]").CoinNetworks(t.Context())
	require.Error(t, err)
	_, err = cannedClient(t, 200, pairJSON).CoinNetworks(t.Context())
	require.Error(t, err, "a listing is documented")
}

// A caller's function reads lookups in any form, and not the listing.
func TestWithCoinNetworkDecoder(t *testing.T) {
	t.Parallel()
	errMine := errors.New("no pairs for " + canary)
	pair := gateway.CoinNetwork{Coin: gateway.Coin{Symbol: "usdt"}, Missing: []string{"id"}}
	other := gateway.CoinNetwork{ID: "other", Coin: gateway.Coin{Symbol: "BTC"}}
	huge := pair
	huge.SwapFee = decimal.New(1, 1_000_000)
	for _, tt := range []struct {
		name, body string
		got        string // what the function gets; empty for no call
		pairs      []gateway.CoinNetwork
		err        error
		ofOne      string // the error of a lookup of one pair; empty for none
		ofCoin     string // the error of the lookup of a coin
	}{
		{"a result", enveloped(`{"x":"a ` + canary + `"}`), `{"x":"a [REDACTED]"}`, []gateway.CoinNetwork{pair}, nil, "", ""},
		{"a body without an envelope", `[{"x":1}]`, `[{"x":1}]`, []gateway.CoinNetwork{pair}, nil, "", ""},
		{"an object without an envelope", `{"coin":{},"network":{}}`, `{"coin":{},"network":{}}`, []gateway.CoinNetwork{pair}, nil, "", ""},
		{"nothing", enveloped(`[]`), ``, nil, nil, "200", ""},
		{"a refusal", `{"message":"no such pair","x":1}`, ``, nil, nil, "no such pair", "no such pair"},
		{"an error of the function", enveloped(`{"x":1}`), `{"x":1}`, nil, errMine, "WithCoinNetworkDecoder: no pairs for [REDACTED]", "no pairs for [REDACTED]"},
		{"no pair of the function", enveloped(`{"x":1}`), `{"x":1}`, nil, nil, "WithCoinNetworkDecoder: it returned 0 pairs, not one", ""},
		{"two pairs", enveloped(`[1]`), `[1]`, []gateway.CoinNetwork{pair, pair}, nil, "it returned 2 pairs, not one", ""},
		{"a pair without a symbol", enveloped(`[1]`), `[1]`, []gateway.CoinNetwork{{ID: pairID}}, nil, "pair 0 names no coin", "pair 0 names no coin"},
		{"a fee of absurd size", enveloped(`[1]`), `[1]`, []gateway.CoinNetwork{huge}, nil, `an amount of "usdt" is not an amount of money`, "is not an amount of money"},
		{"another pair", enveloped(`[1]`), `[1]`, []gateway.CoinNetwork{other}, nil, "another record than the requested one", `it is of the coin "BTC"`},
	} {
		var got string
		c := cannedClient(t, 200, tt.body, gateway.WithCoinNetworkDecoder(func(body json.RawMessage) ([]gateway.CoinNetwork, error) {
			got = string(body)
			return tt.pairs, tt.err
		}))
		for _, name := range []string{"CoinNetwork", "CoinNetworkBySymbol", "CoinNetworksOf"} {
			got = ""
			result, err := subjectNamed(name).call(t.Context(), c)
			assert.Equal(t, tt.got, got, tt.name)
			want := tt.ofOne
			if name == "CoinNetworksOf" {
				want = tt.ofCoin
			}
			if want == "" {
				require.NoError(t, err, tt.name)
				if len(tt.pairs) > 0 {
					assert.Equal(t, pair, *lastPair(result), tt.name)
				}
				continue
			}
			assert.ErrorContains(t, err, want, "%s: %s", tt.name, name)
			assert.NotErrorIs(t, err, errMine, "an error with the key in its text is not wrapped")
			assertNoKey(t, err)
		}
	}
	never := gateway.WithCoinNetworkDecoder(func(json.RawMessage) ([]gateway.CoinNetwork, error) { panic("not for the listing") })
	_, err := cannedClient(t, 200, listing(pairJSON), never).CoinNetworks(t.Context())
	require.NoError(t, err)
}

// The report about a skipped record.
func TestClient_CoinNetworks_skipped(t *testing.T) {
	t.Parallel()
	const tron, minimum, comma = "Tron (TRC20)", "is null, not an amount", `"12,5" is not a decimal number`
	limit := func(value string) string {
		return written(pairFields, "coin", written(coinFields, "minAmount", value))
	}
	for _, tt := range []struct {
		record string
		want   gateway.Skipped
	}{
		{written(pairFields, "coin", written(coinFields, "minAmount", "null")), gateway.Skipped{"/result/1/coin/minAmount", "USDT", tron, pairID, minimum}},
		{limit(`"12,5"`), gateway.Skipped{"/result/1/coin/minAmount", "USDT", tron, pairID, comma}},
		{written(pairFields, "coin", "null"), gateway.Skipped{"/result/1/coin", "", tron, pairID, "is null, not an object"}},
		{written(pairFields, "network", written(networkFields, "name", "")), gateway.Skipped{"/result/1/network/name", "USDT", "", pairID, "is missing"}},
		// what could forge a line in a log
		{limit(`"\u2028x"`), gateway.Skipped{"/result/1/coin/minAmount", "USDT", tron, pairID, `\"\u2028x\" is not a decimal number`}},
		{`"end"`, gateway.Skipped{"/result/1", "", "", "", `"end" is text, not an object`}},
		{limit(`"` + canary + `"`), gateway.Skipped{"/result/1/coin/minAmount", "USDT", tron, pairID, `"[REDACTED]" is not a decimal number`}},
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
		assertNotUnderstood(t, s, enveloped("["+s.result+","+s.result+"]"), "/result", "several records")
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
		{
			gateway.Invoice{Replayed: true, Request: gateway.InvoiceRequest{OrderID: "A-17", Price: decimal.New(1, 0)}},
			`{"orderId":"","replayed":true,"request":{"orderId":"A-17","price":"1","amount":"0"}}`,
		},
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
