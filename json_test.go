package gateway_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/pricing"
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

// Every exported struct is encoded alike by both packages, whatever bytes a header has, comes back whole, and has a form for
// its zero value.
func TestJSON(t *testing.T) {
	t.Parallel()
	data := []any{
		gateway.APIError{},
		gateway.ArgumentError{},
		gateway.Attempt{},
		gateway.Balance{},
		gateway.BalanceAmount{},
		gateway.BalanceQuery{},
		gateway.Call{},
		gateway.Coin{},
		gateway.CoinNetwork{},
		gateway.DecodeError{},
		gateway.Drift{},
		gateway.ExchangeRates{},
		gateway.Finding{},
		gateway.Invoice{},
		gateway.InvoiceDetails{},
		gateway.InvoiceFormat{},
		gateway.InvoiceRequest{},
		gateway.Lease{},
		gateway.MemoryGuard{},
		gateway.Network{},
		gateway.Order{},
		gateway.OrderConflictError{},
		gateway.OrderRecord{},
		gateway.OrderStatus{},
		gateway.OutcomeUnknownError{},
		gateway.PendingQuery{},
		gateway.Rate{},
		gateway.RecordedFinding{},
		gateway.Response{},
		gateway.RetryPolicy{},
		gateway.Skipped{},
		gateway.TransportError{},
		gateway.WaitError{},
		gateway.WaitOptions{},
		gateway.Withdrawal{},
		pricing.CacheOptions{},
		pricing.Catalog{},
		pricing.LimitError{},
	}
	var names []string
	for _, zero := range data {
		typ := reflect.TypeOf(zero)
		names = append(names, typ.Name())
		filled := reflect.New(typ)
		fill(filled.Elem())
		if typ == reflect.TypeFor[pricing.Catalog]() {
			var pair gateway.CoinNetwork
			fill(reflect.ValueOf(&pair).Elem())
			filled = reflect.ValueOf(pricing.NewCatalog([]gateway.CoinNetwork{pair}))
		}
		var texts []string
		for name, codec := range codecs {
			_, err := codec.marshal(zero)
			require.NoError(t, err, "%v by %s", typ, name)
			for _, v := range []any{filled.Interface(), filled.Elem().Interface()} {
				text, err := codec.marshal(v)
				require.NoError(t, err, "%v by %s", typ, name)
				texts = append(texts, canonical(t, text))
				back := reflect.New(typ)
				require.NoError(t, codec.unmarshal(text, back.Interface()), "%v by %s: %s", typ, name, text)
				again, err := codec.marshal(back.Interface())
				require.NoError(t, err)
				texts = append(texts, canonical(t, again))
			}
		}
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(texts))), 1, "%v: %v", typ, texts)
		assert.Greater(t, strings.Count(texts[0], ":"), 0, "%v: %v", typ, texts[0])
	}
	others := []string{"Client", "Observer", "Cache", "Offer", "Offers"} // functions, state, and types that are only written
	assert.ElementsMatch(t, exportedStructs(t, ".", "pricing"), append(names, others...), "this test tries each struct")
}

// canonical is a JSON text with one spelling of each character.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	canonical := jsontext.Value(bytes.Clone(text))
	require.NoError(t, canonical.Canonicalize())
	return string(canonical)
}

// exportedStructs are the names of the structs that the packages in some folders export.
func exportedStructs(t *testing.T, dirs ...string) (names []string) {
	t.Helper()
	for _, dir := range dirs {
		for _, file := range code(t, dir) {
			for node := range ast.Preorder(file) {
				if spec, ok := node.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					if _, ok := spec.Type.(*ast.StructType); ok {
						names = append(names, spec.Name.Name)
					}
				}
			}
		}
	}
	return names
}

// fill sets every exported field to a value that is not zero.
func fill(v reflect.Value) {
	at := time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)
	for typ, value := range map[reflect.Type]any{
		reflect.TypeFor[time.Time](): at, reflect.TypeFor[time.Duration](): 1500 * time.Millisecond, reflect.TypeFor[decimal.Decimal](): decimal.New(15, -1),
		reflect.TypeFor[decimal.NullDecimal](): decimal.NewNullDecimal(decimal.New(15, -1)), reflect.TypeFor[json.RawMessage](): json.RawMessage(`{"n":1}`),
		reflect.TypeFor[http.Header](): http.Header{"X": {"caf\xe9"}}, reflect.TypeFor[gateway.Outcome](): gateway.OutcomeRejected,
	} {
		if v.Type() == typ {
			v.Set(reflect.ValueOf(value))
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8:
		v.SetInt(2)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Interface, reflect.Func: // an error, a function: not in JSON
	default:
		panic("fill: " + v.Type().String())
	}
}
