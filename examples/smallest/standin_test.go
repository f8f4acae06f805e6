package main

import (
	"testing"

	"github.com/cryptogw/gateway/gatewaytest"
)

// The program creates one invoice at the stand-in.
func TestMain_standIn(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	t.Setenv("GATEWAY_BASE_URL", gw.URL)
	t.Setenv("GATEWAY_API_KEY", gw.APIKey)

	main()

	if invoices := gw.InvoicesFor("A-17"); len(invoices) != 1 || invoices[0].Price != "10.50" {
		t.Errorf("the stand-in has %+v", invoices)
	}
}
