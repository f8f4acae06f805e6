package rivergateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/cryptogw/gateway"
)

// Workers without a shared guard cannot be made, also not by an option of the client.
func TestNew(t *testing.T) {
	s := newShop(t)
	for name, change := range map[string]func(*Config){
		"Guard":      func(c *Config) { c.Guard = nil },
		"Pool":       func(c *Config) { c.Pool = nil },
		"RunTimeout": func(c *Config) { c.RunTimeout = -1 },
		"Final":      func(c *Config) { c.Final = []gateway.WithdrawalStatus{"CANCELED", "PENDING"} },
		"baseURL":    func(c *Config) { c.BaseURL = "ftp://gateway.example" },
	} {
		cfg := s.cfg
		change(&cfg)
		_, err := New(cfg)
		if refusal, ok := errors.AsType[*gateway.ArgumentError](err); !ok || refusal.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("GATEWAY_BASE_URL", s.gw.URL)
	t.Setenv("GATEWAY_API_KEY", s.gw.APIKey)
	s.cfg.BaseURL, s.cfg.APIKey = "", ""
	s.with(gateway.WithOrderGuard(new(gateway.MemoryGuard)))
	if job, err := s.runInvoice(s.insert(request("A-17"), InsertOptions{})); job.State != completed {
		t.Errorf("with the environment: %s: %v", job.State, err)
	}
	s.checkOrder("A-17", gateway.OrderCreated)
	workers := river.NewWorkers()
	if jobs := s.jobs(); jobs.AddWorkers(workers) != nil || jobs.AddWorkers(workers) == nil {
		t.Error("the workers can be registered once")
	}
}

// A program that prints or logs its Config, or its Jobs, shows no key.
func TestConfig_secret(t *testing.T) {
	cfg := newShop(t).cfg
	jobs, err := New(cfg)
	check(t, err)
	for _, value := range []any{cfg, &cfg, []Config{cfg}, map[string]*Config{"river": &cfg}, struct{ River Config }{cfg}, jobs, *jobs} {
		var shown strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			_, _ = fmt.Fprintf(&shown, verb+"\n", value)
		}
		slog.New(slog.NewTextHandler(&shown, nil)).Info("the program starts", "value", value)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("the program starts", "value", value)
		_ = json.NewEncoder(&shown).Encode(value) // refuses the functions of the others
		text := shown.String()
		if _, isConfig := value.(Config); strings.Contains(text, cfg.APIKey) || strings.Contains(text, fmt.Sprintf("%x", cfg.APIKey)) ||
			isConfig && strings.Count(text, configText) != 10 {
			t.Errorf("%T is shown as %s", value, text)
		}
	}
}
