package gatewaytest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A text in which no expression is tried has nothing to redact.
func FuzzRedactor(f *testing.F) {
	for _, text := range []string{
		"", "k-1", `{"APIKEY":"x"}`, `{"api\u004bey":"x"}`, "?api_key=x", "k%2D1", "K-1", "a+b", `{"apiKey":"s"}`, "\u212a-1",
	} {
		f.Add("K-1", text)
		f.Add("\u017f", text)
		f.Add("a b", text)
	}
	f.Fuzz(func(t *testing.T, key, text string) {
		if key == "" || len(key) > 64 {
			return
		}
		r := newRedactor(key)
		target := r.key.ReplaceAllLiteralString(r.query.ReplaceAllString(text, "${1}"+redacted), redacted)
		assert.Equal(t, target, r.target(text))
		body := r.key.ReplaceAllLiteral(r.field.ReplaceAll([]byte(text), []byte(`${1}"`+redacted+`"`)), []byte(redacted))
		assert.Equal(t, string(body), string(r.body([]byte(text))))
	})
}
