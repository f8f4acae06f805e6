package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/require"
)

// A browserHarness is a browser and two shops over one database, with a
// gateway that can inject faults.
type browserHarness struct {
	browser     context.Context
	gw          *gatewaytest.Server
	shop, other string // the URLs of the two shops
	axe         string // the source of axe-core
}

// TestBrowser runs the shop in Chromium. It needs what ci.sh installs.
func TestBrowser(t *testing.T) {
	h := newBrowserHarness(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *browserHarness)
	}{
		{"page errors are detected", browsePageErrors},
		{"pages of a purchase are accessible and the QR code is readable", browsePurchase},
		{"purchase by keyboard", browseByKeyboard},
		{"double click, back and reload create one invoice", browseDoubleClick},
		{"two tabs on two servers create one invoice", browseTwoTabs},
		{"live amounts and old rates", browseRates},
		{"lost response, the merchant finds the invoice", browseInvoiceFound},
		{"lost response, the merchant finds no invoice", browseNoInvoice},
		{"refused invoice and next order", browseRefusal},
		{"merchant pages", browseAdmin},
		{"without JavaScript", browseWithoutScripts},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, h) })
	}
}

func newBrowserHarness(t *testing.T) *browserHarness {
	t.Helper()
	h := newHarness(t)
	h.cfg.liveInterval, h.cfg.ratesTTL, h.cfg.ratesStaleAfter = 200*time.Millisecond, 100*time.Millisecond, 3*time.Second
	h.cfg.invoiceTimeout = 10 * time.Second // some responses are slow
	one, first := h.open()
	_, second := h.open()
	one.demo = true // shows the demo labels
	require.NoError(t, one.seedDemo(t.Context(), &standIn{h.gw}))
	for range 40 {
		(&standIn{h.gw}).randomizeRates()
		require.NoError(t, one.rates.Refresh(t.Context()))
		rates, err := one.rates.Get(t.Context())
		require.NoError(t, err)
		one.history.add(rates)
	}
	axe, err := os.ReadFile(filepath.Join("browser", "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err, "run ci.sh: it installs what is in browser/package-lock.json")
	require.NoError(t, os.MkdirAll(screenshots, 0o755))
	return &browserHarness{startBrowser(t), h.gw, first.URL, second.URL, string(axe)}
}

// invoices returns the gateway's invoices for the order of a URL.
func (h *browserHarness) invoices(address string) []gatewaytest.Invoice {
	return h.gw.InvoicesFor(path.Base(address))
}

// startBrowser starts Chromium without access to other hosts. Its profile is
// a new directory. As root it runs without the sandbox, which does not start
// as root.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	program := "chromium"
	if other := os.Getenv("CHROMIUM"); other != "" {
		program = other
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], // headless, no first run, no sync, no background requests
		chromedp.ExecPath(program),
		chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	require.NoError(t, chromedp.Do(ctx), "run ci.sh: it installs Chromium")
	return ctx
}
