package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/postgrestest"
)

// The program does what its comment says, also when it runs again.
func TestRun(t *testing.T) {
	server, err := postgrestest.Start("shared_buffers=32MB")
	if err != nil {
		t.Fatalf("no PostgreSQL server: %v", err)
	}
	defer server.Stop()
	gw := gatewaytest.NewServer()
	defer gw.Close()
	t.Setenv("GATEWAY_BASE_URL", gw.URL)
	t.Setenv("GATEWAY_API_KEY", gw.APIKey)
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	var first string
	for _, tt := range []struct{ order, want string }{
		{"A-16", "order A-16: unknown "},
		{"A-17", "order A-17: succeeded {"},
		{"A-17", "order A-17: succeeded {"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), server.DSN("postgres"), tt.order, "10.50", &out); err != nil || !strings.HasPrefix(out.String(), tt.want) {
			t.Fatalf("%q, %v", out.String(), err)
		}
		if again := out.String(); tt.order == "A-17" && first != "" && again != first {
			t.Errorf("%q, then %q", first, again)
		} else if tt.order == "A-17" {
			first = again
		}
	}
	if n := len(gw.InvoicesFor("A-17")); n != 1 {
		t.Errorf("%d invoices", n)
	}
	if err := run(t.Context(), os.Getenv("NO_DATABASE"), "A-17", "ten", os.Stdout); err == nil {
		t.Error("a price that is none")
	}
}
