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

// A world is a browser and two shops over one database, with a gateway where
// trouble can be made.
type world struct {
	browser     context.Context
	gw          *gatewaytest.Server
	shop, other string // where the two listen
	axe         string // the script that looks at pages
}

// The shop as people use it, in Chromium. It needs what ci.sh installs.
func TestBrowser(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"what a page complains of is seen", browseComplaints},
		{"every page of a purchase is clear to everyone, and its code says where to pay", browsePages},
		{"the whole purchase by keyboard alone", browseByKeyboard},
		{"a double click, the back button and a reload end in one invoice", browseImpatiently},
		{"two tabs on two servers with two coins end in one invoice", browseTwice},
		{"amounts change on the page, and old rates say so", browseRates},
		{"a lost answer ends in a calm page; the merchant finds the invoice", browseToFoundInvoice},
		{"a lost answer; the merchant finds that there is no invoice", browseToNoInvoice},
		{"a refusal is said, and the next order is another one", browseToRefusal},
		{"the merchant sees orders, rates, drift, balances, and withdrawals move", browseAdmin},
		{"without scripts everything works but live numbers", browseWithoutScripts},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, w) })
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	st := newStage(t)
	st.cfg.tick, st.cfg.ratesTTL, st.cfg.ratesStale = 200*time.Millisecond, 100*time.Millisecond, 3*time.Second
	st.cfg.patience = 10 * time.Second // some answers are slow
	one, first := st.open()
	_, second := st.open()
	one.demo = true // for the labels of the demo
	require.NoError(t, one.seedDemo(t.Context(), &standIn{st.gw}))
	for range 40 {
		(&standIn{st.gw}).moveRates()
		require.NoError(t, one.rates.Refresh(t.Context()))
		rates, err := one.rates.Get(t.Context())
		require.NoError(t, err)
		one.history.add(rates)
	}
	axe, err := os.ReadFile(filepath.Join("browser", "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err, "run ci.sh: it installs what is in browser/package-lock.json")
	require.NoError(t, os.MkdirAll(pictures, 0o755))
	return &world{startBrowser(t), st.gw, first.URL, second.URL, string(axe)}
}

// invoices are those that the gateway has made for the order of an address.
func (w *world) invoices(address string) []gatewaytest.Invoice {
	return w.gw.InvoicesFor(path.Base(address))
}

// startBrowser starts Chromium, which finds nothing but this machine. Its
// profile is a new directory; for root it runs without its sandbox, which
// would not start.
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
