package main

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cryptogw/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each library reads the success of its service, so that no figure comes from a response
// that it does not understand.
func TestClients_success(t *testing.T) {
	for _, c := range clients() {
		t.Run(c.String(), func(t *testing.T) {
			s := newService("", c)
			defer s.Close()
			defer s.CloseClientConnections()
			memory := func() gateway.OrderGuard { return new(gateway.MemoryGuard) }
			run := &cell{client: c, order: "order-1", service: s, guard: memory}
			ctx, send, err := run.process(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := send(ctx, "order-1"); err != nil || s.count() != 1 {
				t.Errorf("%d invoices, %v", s.count(), err)
			}
		})
	}
}

// The authors of a library can read its row on one screen.
func TestClients_length(t *testing.T) {
	files, err := filepath.Glob("client_*.go")
	if err != nil || len(files) < 9 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if lines := strings.Count(string(text), "\n"); err != nil || lines > 50 {
			t.Errorf("%s has %d lines, %v", name, lines, err)
		}
	}
}

// The service commits every POST before it loses the response, and none with a key that
// it honours.
func TestService(t *testing.T) {
	for name, c := range map[string]struct {
		keys  bool
		key   string
		want  int
		fault fault
	}{
		"without a key":       {true, "", 2, cut},
		"a key is honoured":   {true, "order-1", 1, cut},
		"a key is ignored":    {false, "order-1", 2, cut},
		"the response is 502": {true, "", 2, badGateway},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(c.fault, client{keys: c.keys, success: "{}"})
			defer s.Close()
			var statuses []int
			for range 2 {
				statuses = append(statuses, post(t, s.URL, c.key))
			}
			if s.count() != c.want {
				t.Errorf("%d invoices, want %d", s.count(), c.want)
			}
			if lost := map[fault]int{cut: 0, badGateway: 502}[c.fault]; statuses[0] != lost || statuses[1] != http.StatusOK {
				t.Errorf("statuses %v", statuses)
			}
		})
	}
}

// post returns the status of the response, or 0 when none came.
func post(t *testing.T, url, key string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// Each control that has another figure, or none, is an error.
func TestControls(t *testing.T) {
	right := controls()
	if err := right.check(nil); err != nil || len(right) < 7 {
		t.Fatal(len(right), err)
	}
	for at, want := range right {
		wrong := maps.Clone(right)
		wrong[at] = 3 - want
		if wrong.check(nil) == nil {
			t.Errorf("%v may be %d", at, wrong[at])
		}
		delete(wrong, at)
		if wrong.check(nil) == nil {
			t.Errorf("%v may be missing", at)
		}
	}
}

// An order of the row with sqlguard that is not listed is an error.
func TestControls_pending(t *testing.T) {
	right := controls()
	at := position{"none", gatewaySQLGuard.String(), cut}
	right[at] = 1
	if err := right.check(map[string]bool{at.order(): true}); err != nil {
		t.Error(err)
	}
	if right.check(map[string]bool{"another": true}) == nil {
		t.Error("the order may be forgotten")
	}
}

// A control stands in the tables.
func TestControls_exist(t *testing.T) {
	stands := map[position]bool{}
	for _, e := range engines() {
		for _, c := range clients() {
			for _, f := range faults {
				stands[position{e.name, c.String(), f}] = true
			}
		}
	}
	for at := range controls() {
		if !stands[at] {
			t.Errorf("%v is in no table", at)
		}
	}
}

func TestKeep(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + begin + "| 1 |\n" + end + "after\n")
	if writePage(name, "| 2 |\n", false, true) == nil {
		t.Error("other tables are accepted")
	}
	if err := writePage(name, "| 2 |\n", true, false); err != nil {
		t.Error(err)
	}
	if err := writePage(name, "| 2 |\n", false, true); err != nil {
		t.Error(err)
	}
	write("nothing\n")
	if writePage(name, "", true, false) == nil {
		t.Error("a page without marks is accepted")
	}
}

// The first process of a deploy ends when the invoice is committed, and no later one.
func TestCell_deploy(t *testing.T) {
	s := newService(deploy, netHTTP)
	defer s.Close()
	run := &cell{client: netHTTP, fault: deploy, service: s}
	if err := loop(t.Context(), run); err != nil || s.count() != 2 || run.processes != 2 {
		t.Errorf("%d invoices of %d processes, %v", s.count(), run.processes, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if loop(ctx, &cell{client: netHTTP, fault: cut, service: s}) == nil {
		t.Error("a loop whose context has ended succeeds")
	}
}
