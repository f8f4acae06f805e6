package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A browserSession is an isolated browser context with its own cookies and
// tabs.
type browserSession struct {
	*browserHarness
	t       *testing.T
	cookies context.Context

	mu         sync.Mutex
	pageErrors []string
}

// A tab is an open page. Its methods fail the test after 30 seconds.
type tab struct {
	*browserSession
	ctx context.Context
}

// newSession creates a browser context that is closed at the end of the
// test. Errors of its pages fail the test, including violations of the
// Content-Security-Policy.
func (h *browserHarness) newSession(t *testing.T) *browserSession {
	t.Helper()
	p := &browserSession{browserHarness: h, t: t}
	var closeIt context.CancelFunc
	p.cookies, closeIt = chromedp.NewContext(h.browser, chromedp.WithNewBrowserContext())
	require.NoError(t, chromedp.Do(p.cookies))
	t.Cleanup(func() {
		closeIt()
		p.mu.Lock()
		defer p.mu.Unlock()
		assert.Empty(t, p.pageErrors)
	})
	return p
}

// newTab opens a tab in desktop size.
func (p *browserSession) newTab() *tab {
	p.t.Helper()
	ctx, closeIt := chromedp.NewContext(p.cookies, chromedp.WithListener(p.listen))
	require.NoError(p.t, chromedp.Do(ctx))
	tb := &tab{p, ctx}
	p.t.Cleanup(func() {
		tb.eval("0") // all earlier events have been received
		closeIt()
	})
	tb.resize(desktop)
	return tb
}

// open opens a URL in a new tab.
func (p *browserSession) open(address string) *tab {
	p.t.Helper()
	tb := p.newTab()
	tb.do(chromedp.Navigate(address))
	return tb
}

// refusedPage matches the browser's message about a 4xx response, which is
// expected.
var refusedPage = regexp.MustCompile(`status of 4\d\d`)

func (p *browserSession) listen(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !refusedPage.MatchString(e.Entry.Text) {
			p.addPageError(e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		p.addPageError((&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			for _, arg := range e.Args {
				p.addPageError(arg.Description + string(arg.Value))
			}
		}
	}
}

func (p *browserSession) addPageError(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pageErrors = append(p.pageErrors, text)
}

// do runs actions in sequence.
func (tb *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	runAction(tb, chromedp.Steps(steps...))
}

// runAction runs an action and returns its result.
func runAction[T any](tb *tab, action chromedp.Action[T]) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, 30*time.Second)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		visibleText, _ := chromedp.Run(tb.ctx, chromedp.Evaluate[string]("location + ': ' + document.body.innerText"))
		require.NoError(tb.t, err, visibleText)
	}
	return result
}

// eval evaluates an expression in the page and awaits its promise.
func (tb *tab) eval(expression string) any {
	tb.t.Helper()
	return runAction(tb, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
}

// waitFor waits until an element is visible.
func (tb *tab) waitFor(element string) {
	tb.t.Helper()
	tb.do(chromedp.WaitVisible(chromedp.Search(element)))
}

// text waits for an element and returns its text.
func (tb *tab) text(element string) string {
	tb.t.Helper()
	return strings.TrimSpace(runAction(tb, chromedp.Text(chromedp.Search(element), chromedp.NodeVisible)))
}

// click scrolls to an element and clicks it.
func (tb *tab) click(element string) {
	tb.t.Helper()
	tb.waitFor(element)
	tb.eval(elementExpr(element) + `.scrollIntoView({block: "center", behavior: "instant"})`)
	tb.do(chromedp.Click(chromedp.Search(element)))
}

// elementExpr returns a script expression for an element. The policy of the
// shop's pages forbids [chromedp.Poll], which compiles a function from a
// string.
func elementExpr(element string) string {
	return fmt.Sprintf("document.evaluate(%q, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE, null).singleNodeValue", element)
}

// Elements are located by their visible or accessible names, as XPath.

func heading(text string) string { return fmt.Sprintf("//h1[normalize-space()=%q]", text) }

func button(text string) string {
	return fmt.Sprintf("//button[starts-with(@aria-label, %[1]q) or normalize-space()=%[1]q]", text)
}

func field(label string) string {
	return fmt.Sprintf("//input[@id=//label[starts-with(normalize-space(), %q)]/@for]", label)
}

func offerOption(coin, network string) string {
	return fmt.Sprintf("//label[@class='offer'][.//strong=%q][.//small=%q]", coin, "on "+network)
}
