package prism_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/contract/suite"
	"github.com/cryptogw/gateway/internal/everycall"
)

// Prism serves a gateway made from the document alone. It accepts every request of
// the client, and the client accepts its responses as the suite requires.
func TestMock(t *testing.T) {
	url := start(t, "mock")
	w := newRecorder(t)

	t.Run("the suite", func(t *testing.T) {
		suite.Run(t, suite.Target{BaseURL: url, APIKey: "k", Transport: w, WithdrawalID: everycall.WithdrawalID, AllowWrites: true})
	})

	for name, opts := range options() {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, url, "k", w, opts...)
			w.take()
			for _, c := range everycall.Variations() {
				err := c.Send(t.Context(), client)
				statuses, errors := w.take()
				require.Empty(t, errors, c.Name)
				require.Len(t, statuses, 1, "%s: %v", c.Name, err)
				require.Equal(t, c.Status, statuses[0], "%s: %v", c.Name, err)
			}
		})
	}

	for _, m := range invalidRequests() {
		t.Run("rejects "+m.name, func(t *testing.T) {
			status, body := m.send(t, url, w)
			assert.Equal(t, m.status, status, body)
		})
	}
}
