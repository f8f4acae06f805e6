package rivergateway

import (
	"encoding/json"
	"fmt"
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
	for _, value := range []any{cfg, &cfg, []Config{cfg}, map[string]*Config{"river": &cfg}, struct{ River Config }{cfg}, jobs, *jobs} {
		var shown strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			_, _ = fmt.Fprintln(&shown, fmt.Sprintf(verb, value))
		}
		slog.New(slog.NewTextHandler(&shown, nil)).Info("the program starts", "value", value)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("the program starts", "value", value)
		text, err := json.Marshal(value)
		_, _ = fmt.Fprintln(&shown, string(text), err)
		lines := strings.Split(strings.TrimSpace(shown.String()), "\n")
		for _, line := range lines {
			if _, isConfig := value.(Config); strings.Contains(line, key) || strings.Contains(line, fmt.Sprintf("%x", key)) || isConfig && !strings.Contains(line, configText) {
				t.Errorf("%T is shown as %s", value, line)
			}
		}
		if len(lines) != 10 {
			t.Errorf("%T is shown in %d lines", value, len(lines))
		}
	}
}
