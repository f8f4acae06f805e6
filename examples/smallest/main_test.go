package main

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

func TestMain_CreatesAnInvoice(t *testing.T) {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	t.Setenv("GATEWAY_BASE_URL", gw.URL)
	t.Setenv("GATEWAY_API_KEY", gw.APIKey)

	printed := capture(t, main)

	require.Len(t, gw.Invoices(), 1)
	invoice := gw.Invoices()[0]
	assert.Equal(t, "A-17", invoice.OrderID)
	assert.Equal(t, "10.50", invoice.Price)
	assert.Contains(t, printed, "order A-17 has an invoice: ")
	assert.Contains(t, printed, fmt.Sprintf("%q", invoice.ID))
}

// capture returns what f prints.
func capture(t *testing.T, f func()) string {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = write
	defer func() { os.Stdout = stdout }()
	f()
	require.NoError(t, write.Close())
	printed, err := io.ReadAll(read)
	require.NoError(t, err)
	return string(printed)
}
