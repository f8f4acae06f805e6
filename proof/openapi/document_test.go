package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The document has the seven operations, and each has the envelope of an error for
// every status that is not a success.
// I-1
func TestOpenAPI_operations(t *testing.T) {
	doc := document(t)
	var operations []string
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			operations = append(operations, method+" "+path)
			failure := operation.Responses.Default()
			require.NotNil(t, failure, path)
			assert.Same(t, doc.Components.Schemas["Error"].Value, failure.Value.Content.Get("application/json").Schema.Value, path)
			assert.Equal(t, 2, operation.Responses.Len(), "%s: one success and the errors", path)
		}
	}
	assert.ElementsMatch(t, []string{
		"GET /api/networks-coins",
		"GET /api/networks-coins/{id}",
		"GET /api/networks-coins/{coinSymbol}/{networkName}",
		"GET /api/exchange-rate",
		"GET /api/balance/",
		"POST /api/invoice/create",
		"GET /api/withdrawal/inquiry/{withdrawRequestId}",
	}, operations)
}

// What the interface does not show is marked in its place, with the reason; the
// schema of a body that is not shown states nothing else.
func TestOpenAPI_not_shown(t *testing.T) {
	encoded, err := document(t).MarshalJSON()
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(encoded, &tree))
	marked := map[string]map[string]any{}
	collect(tree, "", marked)

	const success = "/components/schemas/NotShown"
	assert.Equal(t, []string{
		"/components/responses/ErrorResponse",
		"/components/responses/KeyHeaderErrorResponse",
		"/components/schemas/CoinNetwork/properties/arrivalTime",
		"/components/schemas/CoinNetwork/properties/expirationTime",
		"/components/schemas/InvoiceRequestOfSample/properties/baseCurrency",
		"/components/schemas/InvoiceRequestOfTable/properties/baseCurrency",
		success,
		"/components/schemas/WithdrawalStatus",
		"/paths//api/balance//get",
		"/paths//api/exchange-rate/get",
		"/paths//api/invoice/create/post",
		"/paths//api/networks-coins/get",
		"/paths//api/networks-coins/{coinSymbol}/{networkName}/get",
		"/paths//api/networks-coins/{id}/get",
	}, slices.Sorted(maps.Keys(marked)))
	for pointer, node := range marked {
		assert.Equal(t, true, node["x-not-shown"], pointer)
		assert.NotEmpty(t, node["x-not-shown-reason"], pointer)
	}
	assert.Len(t, marked[success], 2, "the mark and the reason")
	assert.Equal(t, 5, strings.Count(string(encoded), `"#/components/schemas/NotShown"`), "bodies of which the shape is not shown")
}

// collect finds the objects that have one of the two extensions.
func collect(node any, pointer string, marked map[string]map[string]any) {
	switch node := node.(type) {
	case map[string]any:
		if node["x-not-shown"] != nil || node["x-not-shown-reason"] != nil {
			marked[pointer] = node
		}
		for name, child := range node {
			collect(child, pointer+"/"+name, marked)
		}
	case []any:
		for _, child := range node {
			collect(child, pointer, marked)
		}
	}
}
