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

// A person has cookies of their own, and tabs.
type person struct {
	*world
	t       *testing.T
	cookies context.Context

	mu         sync.Mutex
	complaints []string
}

// A tab is an open page. Its methods fail the test and wait 30 seconds at most.
type tab struct {
	*person
	ctx context.Context
}

// visit brings a new person, who leaves at the end of the test. What a page
// complained of until then fails it: a violation of the
// Content-Security-Policy, too.
func (w *world) visit(t *testing.T) *person {
	t.Helper()
	p := &person{world: w, t: t}
	var leave context.CancelFunc
	p.cookies, leave = chromedp.NewContext(w.browser, chromedp.WithNewBrowserContext())
	require.NoError(t, chromedp.Do(p.cookies))
	t.Cleanup(func() {
		leave()
		p.mu.Lock()
		defer p.mu.Unlock()
		assert.Empty(t, p.complaints)
	})
	return p
}

// newTab opens a tab of the size of a desktop.
func (p *person) newTab() *tab {
	p.t.Helper()
	ctx, leave := chromedp.NewContext(p.cookies, chromedp.WithListener(p.listen))
	require.NoError(p.t, chromedp.Do(ctx))
	tb := &tab{p, ctx}
	p.t.Cleanup(func() {
		tb.ask("0") // what was said before the answer has been heard
		leave()
	})
	tb.resize(desktop)
	return tb
}

// open opens an address in a new tab.
func (p *person) open(address string) *tab {
	p.t.Helper()
	tb := p.newTab()
	tb.do(chromedp.Navigate(address))
	return tb
}

// A page that was refused or not found is no reason to complain.
var refusedPage = regexp.MustCompile(`status of 4\d\d`)

func (p *person) listen(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !refusedPage.MatchString(e.Entry.Text) {
			p.complain(e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		p.complain((&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			for _, said := range e.Args {
				p.complain(said.Description + string(said.Value))
			}
		}
	}
}

func (p *person) complain(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = append(p.complaints, text)
}

// do carries out steps, one after the other.
func (tb *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	perform(tb, chromedp.Steps(steps...))
}

// perform carries out an action and returns what it gave.
func perform[T any](tb *tab, action chromedp.Action[T]) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, 30*time.Second)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		words, _ := chromedp.Run(tb.ctx, chromedp.Evaluate[string]("location + ': ' + document.body.innerText"))
		require.NoError(tb.t, err, words)
	}
	return result
}

// ask evaluates an expression in the page and waits for what it promises.
func (tb *tab) ask(expression string) any {
	tb.t.Helper()
	return perform(tb, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
}

// see waits until an element is visible.
func (tb *tab) see(element string) {
	tb.t.Helper()
	tb.do(chromedp.WaitVisible(chromedp.Search(element)))
}

// text waits for an element and returns its text.
func (tb *tab) text(element string) string {
	tb.t.Helper()
	return strings.TrimSpace(perform(tb, chromedp.Text(chromedp.Search(element), chromedp.NodeVisible)))
}

// click brings an element from under what sticks to the window, and clicks it.
func (tb *tab) click(element string) {
	tb.t.Helper()
	tb.see(element)
	tb.ask(found(element) + `.scrollIntoView({block: "center", behavior: "instant"})`)
	tb.do(chromedp.Click(chromedp.Search(element)))
}

// doubleClick returns two clicks, one after the other, on what is now in the
// place of an element.
func (tb *tab) doubleClick(element string) chromedp.Action[chromedp.Void] {
	tb.t.Helper()
	tb.see(element)
	at := perform(tb, chromedp.Evaluate[struct{ X, Y float64 }](`(() => {
		const button = `+found(element)+`
		button.scrollIntoView({block: "center", behavior: "instant"})
		const {x, y, width, height} = button.getBoundingClientRect()
		return {X: x + width / 2, Y: y + height / 2}
	})()`))
	return chromedp.Steps(chromedp.MouseClickXY(at.X, at.Y), chromedp.MouseClickXY(at.X, at.Y, chromedp.ClickCount(2)))
}

// found is the expression of a page's script for an element. The policy of the
// shop's pages forbids [chromedp.Poll], which makes a function from a text.
func found(element string) string {
	return fmt.Sprintf("document.evaluate(%q, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE, null).singleNodeValue", element)
}

// Elements are named as people see them, by XPath.

func heading(text string) string { return fmt.Sprintf("//h1[normalize-space()=%q]", text) }

func button(text string) string {
	return fmt.Sprintf("//button[starts-with(@aria-label, %[1]q) or normalize-space()=%[1]q]", text)
}

func field(label string) string {
	return fmt.Sprintf("//input[@id=//label[starts-with(normalize-space(), %q)]/@for]", label)
}

func offered(coin, network string) string {
	return fmt.Sprintf("//label[@data-offer][.//strong=%q][.//small=%q]", coin, "on "+network)
}
