package main

import (
	"testing"

	"github.com/cryptogw/gateway/gatewaytest"
)

// However often it runs, the order has one invoice.
func TestMain_runTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	gw := gatewaytest.NewServer()
	defer gw.Close()
	t.Setenv("GATEWAY_BASE_URL", gw.URL)
	t.Setenv("GATEWAY_API_KEY", gw.APIKey)
	for range 2 {
		main()
	}
	if invoices := gw.InvoicesFor("A-17"); len(invoices) != 1 {
		t.Errorf("the order has %d invoices", len(invoices))
	}
}
