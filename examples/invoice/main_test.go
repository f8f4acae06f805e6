package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/examples/internal/cli"
	"github.com/cryptogw/gateway/examples/internal/clitest"
	"github.com/cryptogw/gateway/gatewaytest"
)

func order(more ...string) []string {
	return append([]string{"-order", "A-17", "-price", "10.50", "-amount", "10.490000"}, more...)
}

func TestRun_succeeded(t *testing.T) {
	gw := clitest.Gateway(t)
	stdout, err := clitest.Call(t.Context(), t, run, gw, order("-currency", "usd", "-coin", "USDT", "-network", "Tron")...)
	require.NoError(t, err)
	assert.Contains(t, stdout, "The invoice for order A-17 exists. Response:\n{")
	require.Len(t, gw.Invoices(), 1)
	got := gw.Invoices()[0]
	assert.Contains(t, stdout, got.ID)
	got.ID, got.CreatedAt = "", time.Time{}
	assert.Equal(t, gatewaytest.Invoice{
		OrderID: "A-17", Price: "10.50", Amount: "10.490000", PriceQuoted: true, AmountQuoted: true,
		BaseCurrency: "usd", CoinSymbol: "USDT", NetworkName: "Tron",
	}, got)
}

// The message and the exit code state the outcome.
func TestRun_failed(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx     context.Context
		fault   gatewaytest.Fault
		code    int
		text    string
		outcome gateway.Outcome
		created int
	}{
		"not sent":                {ended, gatewaytest.Fault{}, 3, "nothing was sent: gateway: ", gateway.OutcomeNotSent, 0},
		"rejected":                {t.Context(), gatewaytest.Refuse(422, "no"), 4, `the service refused the invoice: gateway: create_invoice: 422: "no"`, gateway.OutcomeRejected, 0},
		"unknown, exists":         {t.Context(), gatewaytest.CommitThenDrop(), 5, "do not run this again before you have looked the order up: gateway: ", gateway.OutcomeUnknown, 1},
		"unknown, does not exist": {t.Context(), gatewaytest.BadGateway(), 5, "do not run this again before you have looked the order up: gateway: ", gateway.OutcomeUnknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			gw := clitest.Gateway(t)
			gw.InjectFault(gatewaytest.OpCreateInvoice, 1, test.fault)
			stdout, err := clitest.Call(test.ctx, t, run, gw, order()...)
			require.ErrorContains(t, err, test.text)
			assert.Equal(t, test.code, cli.Code(err))
			assert.Equal(t, test.outcome, gateway.OutcomeOf(err))
			assert.Len(t, gw.Invoices(), test.created)
			assert.Empty(t, stdout)
		})
	}
}

// An invoice that the client refuses was not sent either.
func TestRun_refusedHere(t *testing.T) {
	gw := clitest.Gateway(t)
	_, err := clitest.Call(t.Context(), t, run, gw, order("-currency", "US D")...)
	require.ErrorContains(t, err, "nothing was sent: gateway: create_invoice: baseCurrency: must not contain spaces")
	assert.Equal(t, 3, cli.Code(err))
	assert.Empty(t, gw.Requests())
}

func TestRun_arguments(t *testing.T) {
	clitest.NeedsGateway(t, run, order()...)
	clitest.RefusesArguments(t, run, map[string][]string{
		"-order is missing\nusage: invoice -order ID":                     {"-price", "1", "-amount", "1"},
		"-price is missing, or not above zero\nusage: invoice":            {"-order", "A-17", "-amount", "1"},
		"-amount is missing, or not above zero\nusage: invoice":           {"-order", "A-17", "-price", "1", "-amount", "-5"},
		`invalid value "ten" for flag -price: write it like 10.50`:        {"-price", "ten"},
		`invalid value "1,5" for flag -amount: write it like 10.50`:       {"-amount", "1,5"},
		"\"order-1\" is one argument too many\nusage: invoice -order ID ": order("order-1"),
	})
}
