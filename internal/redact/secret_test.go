package redact_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/redact"
)

// Nothing that holds a key shows it: not to a formatting verb, an encoder or
// reflection.
func TestSecret_isNotShown(t *testing.T) {
	t.Parallel()
	secret := redact.NewSecret(key)
	assert.Equal(t, key, secret.Reveal())
	assert.Equal(t, []bool{false, true, true}, []bool{secret.IsEmpty(), redact.NewSecret("").IsEmpty(), redact.Secret{}.IsEmpty()})
	for name, v := range map[string]any{
		"a secret":               secret,
		"a pointer to a secret":  &secret,
		"secrets":                []redact.Secret{secret},
		"a secret in a field":    struct{ hidden redact.Secret }{secret},
		"a redactor":             redact.New(secret),
		"a redactor with a key":  redact.Redactor{}.With(secret),
		"a redactor of two keys": of(key, key+"2"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var shown strings.Builder
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
				fmt.Fprintf(&shown, verb+"\n", v)
			}
			encoded, _ := json.Marshal(v) // not every type can be encoded
			shown.Write(encoded)
			slog.New(slog.NewTextHandler(&shown, nil)).Info("m", "v", v)
			slog.New(slog.NewJSONHandler(&shown, nil)).Info("m", "v", v)
			for _, text := range []string{key, fmt.Sprintf("%x", key), fmt.Sprintf("%X", key), fmt.Sprint([]byte(key))} {
				assert.NotContains(t, shown.String(), text)
			}
			assert.Empty(t, texts(reflect.ValueOf(v)))
		})
	}
	assert.Equal(t, []string{key}, texts(reflect.ValueOf(&struct{ hidden []any }{[]any{key}})), "reflection would find a key")
}

// texts returns every text that reflection finds in a value.
func texts(v reflect.Value) (found []string) {
	switch v.Kind() {
	case reflect.String:
		found = append(found, v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			found = texts(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			found = append(found, texts(v.Field(i))...)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			found = append(found, texts(v.Index(i))...)
		}
	}
	return found
}
