package fields_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/documented/fields"
)

// The statements of a record's fields are those of the list that docs/interface.md has for it, in its order.
func TestTables(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/interface.md")
	require.NoError(t, err)
	of := map[string][]string{}
	for _, line := range regexp.MustCompile(`(?m)^- (.*) \(\*documented\*; `+"`(\\w+)`"+`\): its fields`).FindAllSubmatch(document, -1) {
		for _, list := range regexp.MustCompile(`\*\*I-(\d+)\*\* to \*\*I-(\d+)\*\*`).FindAllSubmatch(line[1], -1) {
			from, _ := strconv.Atoi(string(list[1]))
			to, _ := strconv.Atoi(string(list[2]))
			for number := from; number <= to; number++ {
				of[string(line[2])] = append(of[string(line[2])], fmt.Sprint("I-", number))
			}
		}
	}
	for name, table := range map[string]*fields.Table{"CoinNetwork": fields.Pair, "Network": fields.Network, "Coin": fields.Coin, "Withdrawal": fields.Withdrawal} {
		var statements []string
		for _, f := range table.Fields {
			statements = append(statements, f.Statement)
		}
		assert.Equal(t, of[name], statements, name)
	}
}

const withdrawal = `{"status":"PENDING","destination":"T","amount":"1","fee":"1","coin":"USDT","network":"Tron","withdrawRequestId":"w-1"}`

func TestTable_Check(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		old, new string
		want     []fields.Difference
	}{
		"none":            {"", "", nil},
		"a new member":    {`{`, `{"new":[null],`, []fields.Difference{{fields.UnknownField, "I-6", []string{"new"}, "array"}}},
		"a missing one":   {`"fee":"1",`, ``, []fields.Difference{{fields.MissingField, "I-135", []string{"fee"}, ""}}},
		"another type":    {`"fee":"1"`, `"fee":1.5`, []fields.Difference{{fields.OtherType, "I-135", []string{"fee"}, "number, not string"}}},
		"another status":  {`PENDING`, `pending`, []fields.Difference{{fields.UnknownStatus, "I-132", []string{"status"}, `"pending"`}}},
		"another and new": {`"fee":"1"`, `"fee":true,"a":1`, []fields.Difference{{fields.OtherType, "I-135", []string{"fee"}, "boolean, not string"}, {fields.UnknownField, "I-6", []string{"a"}, "integer"}}},
	} {
		assert.Equal(t, test.want, differences(t, fields.Withdrawal, strings.Replace(withdrawal, test.old, test.new, 1)), name)
	}
}

// differences checks a record of a table.
func differences(t *testing.T, of *fields.Table, text string) (found []fields.Difference) {
	t.Helper()
	record, ok := fields.Parse([]byte(text))
	require.True(t, ok, text)
	of.Check(record.(map[string]any), func(d fields.Difference) { found = append(found, d) })
	return found
}

// Each format, and what is no longer in it.
func TestTable_formats(t *testing.T) {
	t.Parallel()
	for text, valid := range map[string]bool{
		`"id":"7c9d6d0e-2f0f-4d7e-9a53-0D1F6F1C2B11"`: true, `"id":"7c9d6d0e"`: false, `"id":"{7c9d6d0e-2f0f-4d7e-9a53-0d1f6f1c2b11}"`: false,
		`"symbol":"USDT"`: true, `"symbol":"1INCH"`: true, `"symbol":"USDt"`: false, `"symbol":""`: false,
		`"minAmount":"0.00000001"`: true, `"minAmount":"0.0000001"`: false, `"minAmount":"1"`: false, `"minAmount":"0.000000001"`: false,
		`"precision":6`: true, `"precision":6.0`: false,
		`"created_at":"2023-05-14T09:21:43.000Z"`: true, `"created_at":"2023-05-14T09:21:43+00:00"`: true,
		`"created_at":"2023-05-14T09:21:43+02:00"`: false, `"created_at":"2023-13-14T09:21:43Z"`: false, `"created_at":"2023-05-14"`: false,
	} {
		found := ""
		for _, d := range differences(t, fields.Coin, "{"+text+"}") {
			if d.Kind != fields.MissingField {
				found += strings.Join(d.Path, ".")
			}
		}
		assert.Equal(t, valid, found == "", text)
	}
	found := differences(t, fields.Pair, `{"swapFee":"1e3","networkId":"a","network":{"id":"b"},"coinId":"c","coin":{}}`)
	assert.Contains(t, found, fields.Difference{Kind: fields.OtherFormat, Statement: "I-59", Path: []string{"swapFee"}, Detail: "no decimal number"})
	assert.Contains(t, found, fields.Difference{Kind: fields.Mismatch, Statement: "I-68", Path: []string{"networkId"}, Detail: "is not network.id"})
	assert.Contains(t, found, fields.Difference{Kind: fields.OtherFormat, Statement: "I-79", Path: []string{"network", "id"}, Detail: "no UUID"})
	assert.NotContains(t, found, fields.Difference{Kind: fields.Mismatch, Statement: "I-69", Path: []string{"coinId"}, Detail: "is not coin.id"})
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", "{} {}", "nul"} {
		_, ok := fields.Parse([]byte(text))
		assert.False(t, ok, text)
	}
}
