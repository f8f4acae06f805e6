package prism_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/contract/internal/surface"
	"github.com/cryptogw/gateway/contract/suite"
)

// exampleID is the withdrawal that the document has for an example.
const exampleID = "c0a8011e-8f2b-4f7a-9d0a-5f2f4b6f7e10"

// Prism makes a gateway of nothing but the document. It accepts whatever the
// client sends, and what it answers the client takes as the suite says.
func TestMock(t *testing.T) {
	url := start(t, "mock")
	w := newWitness(t)

	t.Run("the suite", func(t *testing.T) {
		suite.Run(t, suite.Target{BaseURL: url, APIKey: "k", Transport: w, WithdrawalID: exampleID, AllowWrites: true})
	})

	for name, opts := range options() {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, url, "k", w, opts...)
			w.took()
			for _, u := range surface.Uses() {
				err := u.Call(t.Context(), client)
				statuses, refusals := w.took()
				require.Empty(t, refusals, u.Method)
				require.Len(t, statuses, 1, "%s: %v", u.Method, err)
				want := http.StatusOK
				if u.Sends == "getWithdrawal" {
					want = http.StatusCreated
				}
				require.Equal(t, want, statuses[0], "%s: %v", u.Method, err)
			}
		})
	}

	for _, m := range mistakes() {
		t.Run("refuses "+m.name, func(t *testing.T) {
			status, body := m.make(t, url, w)
			assert.Equal(t, m.status, status, body)
		})
	}
}
