package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/internal/strictjson"
)

// An own is a record with a member of every kind that only the client's own JSON has.
type own struct {
	Rate  decimal.NullDecimal `json:"rate"`
	Parts []part              `json:"parts"`
	Texts []string            `json:"texts,omitzero"`
	Raw   json.RawMessage     `json:"raw,omitzero"`
	Raws  []json.RawMessage   `json:"raws,omitzero"`
}

func (p part) MarshalJSON() ([]byte, error) { return partRecord.Marshal(p) }

// What is written is read as the same: documented names in their order, with all digits.
func TestRecord_Marshal(t *testing.T) {
	t.Parallel()
	text, err := wholeRecord.Marshal(documentedWhole())
	require.NoError(t, err)
	assert.Equal(t, wholeJSON(), string(text))
	var again whole
	require.NoError(t, wholeRecord.Unmarshal(text, &again))
	assert.Equal(t, documentedWhole(), again)

	ownRecord := strictjson.RecordOf[own]()
	for _, tt := range []struct {
		name, text string
		value      own
	}{
		{"everything", `{"rate":"1.50","parts":[{"id":"p","price":"15e2"},{"id":"q","price":"-0.10","at":"2024-01-02T03:04:05.6Z"}],"texts":["","a\"b"],"raw":{"a":[null]},"raws":[1,null]}`, own{
			Rate: decimal.NewNullDecimal(decimal.New(150, -2)),
			Parts: []part{
				{ID: "p", Price: decimal.New(15, 2)},
				{ID: "q", Price: decimal.New(-10, -2), At: time.Date(2024, 1, 2, 3, 4, 5, 600_000_000, time.UTC)},
			},
			Texts: []string{"", `a"b`}, Raw: json.RawMessage(`{"a":[null]}`), Raws: []json.RawMessage{json.RawMessage("1"), nil},
		}},
		{"nothing", `{"rate":null,"parts":[]}`, own{Parts: []part{}}},
	} {
		text, err := ownRecord.Marshal(tt.value)
		require.NoError(t, err, tt.name)
		assert.Equal(t, tt.text, string(text), tt.name)
		var again own
		require.NoError(t, ownRecord.Unmarshal(text, &again), tt.name)
		assert.Equal(t, tt.value, again, tt.name)
	}
	for name, wrong := range map[string]own{
		"an amount that is not read again": {Rate: decimal.NewNullDecimal(decimal.New(1, 65))},
		"one within":                       {Parts: []part{{Price: decimal.New(1, 65)}}},
		"invalid UTF-8":                    {Texts: []string{"\xff"}},
		"what is not JSON":                 {Raw: json.RawMessage("nope")},
	} {
		text, err := ownRecord.Marshal(wrong)
		assert.ErrorContains(t, err, "strictjson_test.own to JSON: /", name)
		assert.Empty(t, text, name)
	}
}

func TestRecord_Unmarshal(t *testing.T) {
	t.Parallel()
	ownRecord := strictjson.RecordOf[own]()
	for _, tt := range []struct{ text, reason string }{
		{``, "it EOF"},
		{`null`, "it is null, not an object"},
		{`[]`, "it is an array, not an object"},
		{`{"rate":null,"parts":[]}{}`, "it there is more after the end"},
		{`{"parts":[]}`, "/rate is missing"},
		{`{"rate":null}`, "/parts is missing"},
		{`{"rate":"","parts":[]}`, "/rate is empty"},
		{`{"rate":null,"parts":null}`, "/parts is null, not an array"},
		{`{"rate":null,"parts":[{"id":"p","price":null}]}`, "/parts/0/price is null, not an amount"},
		{`{"rate":null,"parts":[{"id":"p","price":"1"},{"id":"q"}]}`, "/parts/1/price is missing"},
		{`{"rate":null,"parts":[null]}`, "/parts/0 is null, not an object"},
		{`{"rate":null,"parts":[],"texts":[1]}`, "/texts/0 is a number, not text"},
		{`{"rate":null,"rate":null,"parts":[]}`, "/rate duplicate object member name"},
	} {
		before := own{Rate: decimal.NewNullDecimal(decimal.New(7, 0))}
		into := before
		err := ownRecord.Unmarshal([]byte(tt.text), &into)
		require.ErrorContains(t, err, "strictjson_test.own from JSON: "+tt.reason, tt.text)
		assert.Equal(t, before, into, tt.text)
	}
	var got own
	require.NoError(t, ownRecord.Unmarshal([]byte(` {"more":{"a":1},"rate":7.10,"parts":[],"Rate":"8"} `), &got))
	assert.Equal(t, own{Rate: decimal.NewNullDecimal(decimal.New(710, -2)), Parts: []part{}}, got)
	require.NoError(t, ownRecord.Unmarshal([]byte(`{"rate":null,"parts":[],"raw":null}`), &got))
	assert.Equal(t, own{Parts: []part{}}, got, "no text, rather than that of null")
}

// What is read of a text does not change with it.
func TestRecord_Unmarshal_copies(t *testing.T) {
	t.Parallel()
	text := []byte(`{"rate":null,"parts":[],"texts":["abc"],"raw":["abc"]}`)
	var got own
	require.NoError(t, strictjson.RecordOf[own]().Unmarshal(text, &got))
	copy(text, strings.Repeat("x", len(text)))
	assert.Equal(t, []string{"abc"}, got.Texts)
	assert.Equal(t, `["abc"]`, string(got.Raw))
}
