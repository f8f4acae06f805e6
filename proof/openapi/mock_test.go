package openapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

// exampleOf returns the only example of a response with a status.
func exampleOf(t *testing.T, operation *openapi3.Operation, status int) string {
	t.Helper()
	response := operation.Responses.Status(status)
	if response == nil {
		response = operation.Responses.Default()
	}
	examples := response.Value.Content.Get("application/json").Examples
	require.Len(t, examples, 1, "%s %d", operation.OperationID, status)
	for _, example := range examples {
		text, err := json.Marshal(example.Value.Value)
		require.NoError(t, err)
		return string(text)
	}
	return ""
}

// startExamples serves the example of each operation, whatever it is asked, as a generic
// mock does: the example of its success, or of its errors if the status is not 0.
func startExamples(t *testing.T, doc *openapi3.T, failure int) *gateway.Client {
	t.Helper()
	mux := http.NewServeMux() // has the templates of paths that OpenAPI has
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			status := cmp.Or(failure, http.StatusOK)
			if failure == 0 && operation.Responses.Value("201") != nil {
				status = http.StatusCreated
			}
			body := exampleOf(t, operation, status)
			if strings.HasSuffix(path, "/") {
				path += "{$}" // and nothing below
			}
			mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			})
		}
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client, err := gateway.New(server.URL, "k", gateway.WithRetry(gateway.RetryPolicy{MaxAttempts: 1}),
		gateway.WithObserver(gateway.Observer{Drift: func(_ context.Context, d gateway.Drift) { t.Errorf("drift: %v", d) }}))
	require.NoError(t, err)
	return client
}

// exampleArguments are the examples of the parameters.
func exampleArguments(t *testing.T, doc *openapi3.T) everycall.Values {
	t.Helper()
	parameter := func(path, name string) string {
		p := doc.Paths.Value(path).Get.Parameters
		for _, in := range []string{openapi3.ParameterInPath, openapi3.ParameterInQuery} {
			if p := p.GetByInAndName(in, name); p != nil {
				text, _ := p.Example.(string)
				if example := p.Examples["identifier"]; example != nil {
					text, _ = example.Value.Value.(string)
				}
				return text
			}
		}
		require.Fail(t, "no parameter", "%s %s", path, name)
		return ""
	}
	const ofSymbol, balance = "/api/networks-coins/{coinSymbol}/{networkName}", "/api/balance/"
	return everycall.Values{
		PairID:       parameter("/api/networks-coins/{id}", "id"),
		CoinSymbol:   parameter(ofSymbol, "coinSymbol"),
		NetworkName:  parameter(ofSymbol, "networkName"),
		Balance:      gateway.BalanceQuery{CoinSymbol: parameter(balance, "coinSymbol"), NetworkName: parameter(balance, "networkName")},
		Invoice:      everycall.Order("A-17"),
		WithdrawalID: parameter("/api/withdrawal/inquiry/{withdrawRequestId}", "withdrawRequestId"),
	}
}

// Every call of the client reads what a mock made of the examples alone answers, and the
// record is the record that the examples of the parameters ask for. Nothing in it is drift.
func TestOpenAPI_examples_answer_every_call(t *testing.T) {
	doc := document(t)
	values := exampleArguments(t, doc)
	for _, c := range everycall.All() {
		t.Run(c.Name+" reads the example", func(t *testing.T) {
			result, err := c.Do(t.Context(), startExamples(t, doc, 0), values)
			require.NoError(t, err)
			switch result := result.(type) {
			case []gateway.CoinNetwork:
				require.Len(t, result, 1)
				assertPair(t, values, result[0])
			case *gateway.CoinNetwork:
				assertPair(t, values, *result)
			case *gateway.ExchangeRates:
				rate, ok := result.Rate(values.CoinSymbol)
				assert.True(t, ok && rate.USD.Valid && rate.EUR.Valid)
			case *gateway.Balance:
				total, err := result.Total(values.CoinSymbol)
				require.NoError(t, err)
				assert.Equal(t, "250.75", total.String())
				assert.Equal(t, values.NetworkName, result.Amounts[0].NetworkName)
			case *gateway.Invoice:
				assert.Equal(t, values.Invoice.OrderID, result.OrderID)
				address, ok := result.Text("address")
				assert.True(t, ok && address != "")
			case *gateway.Withdrawal:
				assert.Equal(t, values.WithdrawalID, result.WithdrawRequestID)
				assert.Equal(t, gateway.WithdrawalPending, result.Status)
			default:
				t.Errorf("no rule for %T", result)
			}
		})
	}
}

func assertPair(t *testing.T, values everycall.Values, got gateway.CoinNetwork) {
	t.Helper()
	assert.Equal(t, []string{values.PairID, values.CoinSymbol, values.NetworkName}, []string{got.ID, got.Coin.Symbol, got.Network.Name})
}

// Every call of the client reads the examples of errors as what they are.
func TestOpenAPI_examples_of_errors(t *testing.T) {
	doc := document(t)
	for _, c := range everycall.All() {
		t.Run(c.Name+" reports the example", func(t *testing.T) {
			_, err := c.Do(t.Context(), startExamples(t, doc, http.StatusBadRequest), exampleArguments(t, doc))
			refusal, ok := errors.AsType[*gateway.APIError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, http.StatusBadRequest, refusal.StatusCode)
			assert.Equal(t, c.Key == everycall.InHeader, errors.Is(err, gateway.ErrMissingAPIKey))
			assert.NotEmpty(t, refusal.Message)
			assert.Equal(t, c.Writes(), gateway.OutcomeOf(err) == gateway.OutcomeRejected)
		})
	}
}

// An example of what the service does not show says that it is invented.
func TestOpenAPI_examples_are_marked(t *testing.T) {
	doc := document(t)
	notShown := doc.Components.Schemas["NotShown"].Value
	for path, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				media := response.Value.Content.Get("application/json")
				for name, example := range media.Examples {
					invented := media.Schema.Value == notShown || name == "error"
					assert.Equal(t, invented, strings.HasPrefix(example.Value.Summary, "Invented: "), "%s %s %s", path, status, name)
				}
			}
		}
	}
}
