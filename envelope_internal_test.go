package gateway

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What an envelope has of a result is in the part of the body that is kept, or not known.
func TestEnvelope_resultIn(t *testing.T) {
	t.Parallel()
	const body = `{"result": [1]}`
	for _, tt := range []struct {
		name       string
		start, end int64
		want       string
	}{
		{"all of it is kept", 9, 14, "[1]"},
		{"it ends with what is kept", 9, 15, "[1]}"},
		{"its end is not kept", 9, 16, ""},
		{"it was not read", 0, 0, ""},
		{"its end was not read", 9, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := envelope{start: tt.start, end: tt.end}
			assert.Equal(t, tt.want, string(e.resultIn([]byte(body))))
		})
	}
}
