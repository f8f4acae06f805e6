package main

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/require"
)

// A browserHarness is a browser and a shop, with a gateway that can inject faults.
type browserHarness struct {
	*harness
	browser context.Context
	shop    *shop
	server  string          // the URL of the shop
	axe     string          // the source of axe-core
	checked map[string]bool // the pages that were checked
}

// TestBrowser runs the shop in Chromium. It needs Chromium with a font, zbarimg and npm.
func TestBrowser(t *testing.T) {
	h := newBrowserHarness(t)
	t.Run("a buyer and the merchant", h.walk)
	t.Run("without JavaScript", h.walkWithoutScripts)
}

func newBrowserHarness(t *testing.T) *browserHarness {
	t.Helper()
	h := newHarness(t)
	h.cfg.ratesTTL, h.cfg.ratesStaleAfter = 100*time.Millisecond, 3*time.Second
	h.cfg.invoiceTimeout = 10 * time.Second // some responses are slow
	s, server := h.open()
	s.demo = h.gw // shows the demo's labels
	require.NoError(t, s.seedDemo(t.Context()))
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--prefix", "browser", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	output, err := npm.CombinedOutput()
	require.NoError(t, err, "apt-get install nodejs npm\n%s", output)
	axe, err := os.ReadFile(filepath.Join("browser", "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(screenshots, 0o755))
	return &browserHarness{h, startBrowser(t), s, server.URL, string(axe), map[string]bool{}}
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
	require.NoError(t, chromedp.Do(ctx), "apt-get install chromium fonts-dejavu-core")
	return ctx
}
