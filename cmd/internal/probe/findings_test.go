package probe

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/documented/fields"
)

// Each kind of finding at each place. A response that the client can read is not
// a failure, whatever its differences.
func TestRun_findings(t *testing.T) {
	listing := enveloped("[" + pairJSON + "," + pairJSON + "]")
	inquiry := enveloped(withdrawalJSON)
	for _, tt := range []struct {
		name   string
		path   string
		status int
		body   string // of which old becomes new everywhere
		old    string
		new    string
		want   []Finding
		unread string // part of the client's error; "" if it can read the response
	}{
		{
			"a new member of every record", pathListing, 200, listing, `"swapFee"`, `"color":"red","swapFee"`,
			[]Finding{{fields.UnknownField, "I-6", "/result/0/color", "string", 2}},
			"",
		},
		{
			"a new member of a record within", pathByID, 200, enveloped(pairJSON), `"symbol"`, `"kind":null,"symbol"`,
			[]Finding{{fields.UnknownField, "I-6", "/result/coin/kind", "null", 1}},
			"",
		},
		{
			"a name that needs escaping", pathByNetwork, 200, enveloped("[" + pairJSON + "]"), `"name":"Tron"`, `"a/b~c":{},"name":"Tron"`,
			[]Finding{{fields.UnknownField, "I-6", "/result/0/network/a~1b~0c", "object", 1}},
			"",
		},
		{
			"a new member of the envelope", pathRates, 200, enveloped(ratesJSON), `"meta"`, `"page":1,"meta"`,
			[]Finding{{fields.UnknownField, "I-6", "/page", "", 1}},
			"",
		},
		{
			"meta that is not empty", pathListing, 200, listing, `"meta":{}`, `"meta":{"page":1}`,
			[]Finding{{fields.UnknownField, "I-42", "/meta/page", "integer", 1}},
			"",
		},
		{
			"meta that is no object", pathListing, 200, listing, `"meta":{}`, `"meta":[]`,
			[]Finding{{fields.OtherType, "I-42", "/meta", "array, not object", 1}},
			"",
		},
		{
			"no meta", pathBalance, 200, enveloped(balanceJSON), `,"meta":{}`, ``,
			[]Finding{{fields.MissingField, "I-42", "/meta", "", 1}},
			"",
		},
		{
			"no message", pathBalance, 200, enveloped(balanceJSON), `"message":"Operation was successful.",`, ``,
			[]Finding{{fields.MissingField, "I-39", "/message", "or no text", 1}},
			"",
		},
		{
			"another message", pathBalance, 200, enveloped(balanceJSON), "was successful", "is a\u202esuccess",
			[]Finding{{otherMessage, "I-40", "/message", `"Operation is a\u202esuccess."`, 1}},
			"",
		},
		{
			"a member that is missing", pathListing, 200, listing, `"swapFee":"0.5",`, ``,
			[]Finding{{fields.MissingField, "I-59", "/result/0/swapFee", "", 2}},
			"/result/0/swapFee: is missing",
		},
		{
			"an identifier that is missing beside its record", pathByID, 200, enveloped(pairJSON), `"networkId":"1b0a4c5d-93c5-4a5a-8f3e-6a1f0b7c2d33",`, ``,
			[]Finding{{fields.MissingField, "I-68", "/result/networkId", "", 1}},
			"/result/networkId: is missing",
		},
		{
			"a time that is missing, which the client tolerates", pathByID, 200, enveloped(pairJSON), `"created_at":"2023-05-14T09:21:43.000Z",`, ``,
			[]Finding{{fields.MissingField, "I-70", "/result/created_at", "", 1}, {fields.MissingField, "I-82", "/result/network/created_at", "", 1}, {fields.MissingField, "I-90", "/result/coin/created_at", "", 1}},
			"",
		},
		{
			"a record that is missing", pathByID, 200, enveloped(pairJSON), `"coin":{`, `"money":{`,
			[]Finding{{fields.MissingField, "I-73", "/result/coin", "", 1}, {fields.UnknownField, "I-6", "/result/money", "object", 1}},
			"/result/coin: is missing",
		},
		{
			"an amount that is a number", pathListing, 200, listing, `"withdrawalFee":"1.5"`, `"withdrawalFee":1.5`,
			[]Finding{{fields.OtherType, "I-58", "/result/0/withdrawalFee", "number, not string", 2}},
			"",
		},
		{
			"an amount that is an integer", pathWithdrawal, 201, inquiry, `"fee":"1.5"`, `"fee":1`,
			[]Finding{{fields.OtherType, "I-135", "/result/fee", "integer, not string", 1}},
			"",
		},
		{
			"an amount that is null", pathWithdrawal, 201, inquiry, `"fee":"1.5"`, `"fee":null`,
			[]Finding{{fields.OtherType, "I-135", "/result/fee", "null, not string", 1}},
			"/result/fee: is null, not an amount",
		},
		{
			"an amount in words, which is text", pathWithdrawal, 201, inquiry, `"fee":"1.5"`, `"fee":"none"`,
			[]Finding{},
			"/result/fee: ",
		},
		{
			"a decimal in words", pathByID, 200, enveloped(pairJSON), `"swapFee":"0.5"`, `"swapFee":"none"`,
			[]Finding{{fields.OtherFormat, "I-59", "/result/swapFee", "no decimal number", 1}},
			"/result/swapFee: ",
		},
		{
			"a minimum of too few digits", pathByID, 200, enveloped(pairJSON), `"minAmount":"0.00000100"`, `"minAmount":"0.000001"`,
			[]Finding{{fields.OtherFormat, "I-88", "/result/coin/minAmount", "no decimal number of eight decimal places", 1}},
			"",
		},
		{
			"a symbol in lower case", pathListing, 200, enveloped("[" + pairJSON + "]"), `"symbol":"USDT"`, `"symbol":"USDt"`,
			[]Finding{{fields.OtherFormat, "I-86", "/result/0/coin/symbol", "not in upper case", 1}},
			"",
		},
		{
			"a time of UTC in another spelling", pathByID, 200, enveloped(pairJSON), `:00.000Z`, `:00+00:00`,
			[]Finding{},
			"",
		},
		{
			"an integer that is text", pathByID, 200, enveloped(pairJSON), `"confirmation":20`, `"confirmation":"20"`,
			[]Finding{{fields.OtherType, "I-64", "/result/confirmation", "string, not integer", 1}},
			`/result/confirmation: "20" is text`,
		},
		{
			"an integer with a fraction", pathByID, 200, enveloped(pairJSON), `"precision":6`, `"precision":6.5`,
			[]Finding{{fields.OtherType, "I-87", "/result/coin/precision", "number, not integer", 1}},
			"/result/coin/precision: 6.5 is not an integer",
		},
		{
			"a flag that is a number", pathByID, 200, enveloped(pairJSON), `"depositable":true`, `"depositable":1`,
			[]Finding{{fields.OtherType, "I-62", "/result/depositable", "integer, not boolean", 1}},
			"/result/depositable: 1 is a number",
		},
		{
			"a record that is an identifier", pathBySymbol, 200, enveloped(pairJSON), `"network":{`, `"network":"n-1","net":{`,
			[]Finding{{fields.OtherType, "I-72", "/result/network", "string, not object", 1}, {fields.UnknownField, "I-6", "/result/net", "object", 1}},
			`/result/network: "n-1" is text`,
		},
		{
			"an identifier that is no UUID", pathListing, 200, listing, pairID, `17`,
			[]Finding{{fields.OtherFormat, "I-57", "/result/0/id", "no UUID", 2}},
			"",
		},
		{
			"a time of another kind", pathListing, 200, listing, `"updated_at":"2023-06-01T00:00:00.000Z"`, `"updated_at":"1 June 2023"`,
			[]Finding{
				{fields.OtherFormat, "I-71", "/result/0/updated_at", "no ISO 8601 timestamp in UTC", 2},
				{fields.OtherFormat, "I-83", "/result/0/network/updated_at", "no ISO 8601 timestamp in UTC", 2},
				{fields.OtherFormat, "I-91", "/result/0/coin/updated_at", "no ISO 8601 timestamp in UTC", 2},
			},
			"",
		},
		{
			"records that the client leaves out", pathListing, 200, enveloped("[" + pairJSON + "," + pairJSON + ",7]"), `7]`, strings.Repeat(strings.Replace(pairJSON, `"100000"`, `null`, 1)+",", 2) + pairJSON + "]",
			[]Finding{{fields.OtherType, "I-61", "/result/2/maxWithdraw", "null, not string", 2}, {leftOut, "", "/result/2/maxWithdraw", "is null, not an amount", 2}},
			"",
		},
		{
			"an element that is no record", pathListing, 200, enveloped("[" + pairJSON + ",7]"), `$`, `$`,
			[]Finding{{fields.OtherType, "I-45", "/result/1", "integer, not object", 1}, {leftOut, "", "/result/1", "7 is a number, not an object", 1}},
			"",
		},
		{
			"records of a balance that the client leaves out", pathBalance, 200, enveloped(`[{"coinSymbol":"USDT","balance":"1.5"},null,{"coinSymbol":"TRX","balance":null}]`), `$`, `$`,
			[]Finding{{leftOut, "", "/result/1", "is null, not a record", 1}, {leftOut, "", "/result/2/balance", "is null, not an amount", 1}},
			"",
		},
		{
			"a network that is another", pathListing, 200, listing, `"networkId":"1b0a4c5d`, `"networkId":"00000000`,
			[]Finding{{fields.Mismatch, "I-68", "/result/0/networkId", "is not network.id", 2}},
			"",
		},
		{
			"a coin that is another", pathBySymbol, 200, enveloped("[" + pairJSON + "]"), `"coinId":"5e3f7a90`, `"coinId":"00000000`,
			[]Finding{{fields.Mismatch, "I-69", "/result/0/coinId", "is not coin.id", 1}},
			"",
		},
		{
			"an unknown status", pathWithdrawal, 201, inquiry, `PENDING`, `ON\u001bHOLD`,
			[]Finding{{fields.UnknownStatus, "I-132", "/result/status", `"ON\x1bHOLD"`, 1}},
			"",
		},
		{
			"a status in lower case", pathWithdrawal, 201, inquiry, `PENDING`, `completed`,
			[]Finding{{fields.UnknownStatus, "I-132", "/result/status", `"completed"`, 1}},
			"",
		},
		{
			"another HTTP status than the documented one", pathWithdrawal, 200, inquiry, `$`, `$`, // I-130
			[]Finding{{otherCode, "I-130", "", "200, not 201", 1}},
			"",
		},
		{
			"a new member of a rate", pathRates, 200, enveloped(ratesJSON), `"usd"`, `"gbp":"1","usd"`,
			[]Finding{{fields.UnknownField, "I-6", "/result/0/gbp", "string", 1}},
			"",
		},
		{
			"a third currency", pathRates, 200, enveloped(`{"usd":{"USDT":1},"eur":{"USDT":0.9},"gbp":{"USDT":0.8}}`), `$`, `$`,
			[]Finding{{fields.UnknownField, "I-6", "/result/gbp", "object", 1}},
			"",
		},
		{
			"a new member of a coin in a rate", pathRates, 200, enveloped(`[{"coin":{"symbol":"USDT","hue":1},"usd":1,"eur":"0.9"}]`), `$`, `$`,
			[]Finding{{fields.UnknownField, "I-6", "/result/0/coin/hue", "integer", 1}},
			"",
		},
		{
			"a new member of a balance by symbol", pathBalance, 200, enveloped(`{"BTC":{"balance":"1","locked":"2"},"USDT":{"balance":3,"locked":4}}`), `$`, `$`,
			[]Finding{{fields.UnknownField, "I-6", "/result/BTC/locked", "string", 1}, {fields.UnknownField, "I-6", "/result/USDT/locked", "integer", 1}},
			"",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := tt.body
			if tt.old != "$" {
				require.Contains(t, body, tt.old)
				body = strings.ReplaceAll(body, tt.old, tt.new)
			}
			call, r := probed(t, tt.path, response{tt.path, tt.status, body})
			assert.Equal(t, tt.want, call.Findings)
			assert.Equal(t, tt.status, call.Status)
			if tt.unread == "" {
				assert.Empty(t, call.Error)
			} else {
				assert.Contains(t, call.Error, tt.unread)
			}
			differs := tt.unread != ""
			for _, f := range tt.want {
				differs = differs || f.Statement != "I-6" && f.Statement != ""
			}
			var difference *DifferenceError
			assert.Equal(t, differs, errors.As(r.Err(), &difference), "%v", r.Err())
		})
	}
}
