package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every method of the client reads a good answer with one request.
func TestClient_EveryMethod(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, answer(s.status, s.body()))
			got, err := s.call(t.Context(), newClient(t, w.URL))
			assert.NoError(t, err)
			assertInvariants(t, got, err)
			assert.Len(t, w.Requests(), 1)
		})
	}
}
