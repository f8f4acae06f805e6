package rivergateway

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cryptogw/gateway/sqlguard"
)

// A program that prints or logs its Config, or its Jobs, shows no key.
func TestConfig_secret(t *testing.T) {
	const key = "RIVER-KEY-77"
	cfg := Config{Guard: new(sqlguard.Guard), Pool: new(pgxpool.Pool), BaseURL: "https://gateway.example", APIKey: key}
	jobs, err := New(cfg)
	check(t, err)
	printed := func(format string) func(any) string {
		return func(value any) string { return fmt.Sprintf(format, value) }
	}
	logged := func(newHandler func(io.Writer) slog.Handler) func(any) string {
		return func(value any) string {
			var text strings.Builder
			slog.New(newHandler(&text)).Info("the program starts", "value", value)
			return text.String()
		}
	}
	for name, show := range map[string]func(any) string{
		"%v": printed("%v"), "%+v": printed("%+v"), "%#v": printed("%#v"), "%s": printed("%s"), "%q": printed("%q"), "%d": printed("%d"), "%x": printed("%x"),
		"slog as text": logged(func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) }),
		"slog as JSON": logged(func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) }),
		"encoding/json": func(value any) string {
			text, err := json.Marshal(value)
			return fmt.Sprint(string(text), err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, value := range []any{cfg, &cfg, []Config{cfg}, map[string]*Config{"river": &cfg}, struct{ River Config }{cfg}, jobs, *jobs} {
				if text := show(value); text == "" || strings.Contains(text, key) || strings.Contains(text, fmt.Sprintf("%x", key)) {
					t.Errorf("%T is shown as %s", value, text)
				}
			}
			if text := show(cfg); !strings.Contains(text, configText) {
				t.Errorf("the Config is shown as %s", text)
			}
		})
	}
}
