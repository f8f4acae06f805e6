package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// screenshots is the directory of the screenshots.
var screenshots = filepath.Join("browser", "out")

// A size is a window size in CSS pixels.
type size struct {
	name          string
	width, height int64
}

var (
	phone   = size{"phone", 360, 780}
	desktop = size{"desktop", 1440, 900}
)

// setDark simulates the reader's choice of colors.
func (tb *tab) setDark(dark bool) {
	tb.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	tb.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// resize waits until the page has the size, and returns the height and width
// of its content.
func (tb *tab) resize(s size) (height, width int64) {
	tb.t.Helper()
	tb.do(chromedp.EmulateViewport(s.width, s.height))
	content := runAction(tb, chromedp.Evaluate[[]int64](fmt.Sprintf(`new Promise((done) => {
		const look = () => {
			if (innerWidth !== %d || innerHeight !== %d) return requestAnimationFrame(look)
			const {scrollHeight, scrollWidth} = document.documentElement
			done([scrollHeight, scrollWidth])
		}
		look()
	})`, s.width, s.height), chromedp.EvalAwaitPromise))
	return content[0], content[1]
}

// checkPage checks a page with axe, for horizontal overflow and for its focus, and saves
// a screenshot, in two window sizes, light and dark. It does so once for a name.
func (tb *tab) checkPage(name string) {
	tb.t.Helper()
	if tb.checked[name] {
		return
	}
	tb.checked[name] = true
	for _, s := range []size{phone, desktop} {
		for _, dark := range []bool{true, false} {
			tb.setDark(dark)
			height, width := tb.resize(s)
			assert.LessOrEqual(tb.t, width, s.width, "%s on a %s", name, s.name)
			assert.Empty(tb.t, tb.violations(), "%s, %s, dark: %v", name, s.name, dark)
			tb.resize(size{s.name, s.width, height})
			screenshot := runAction(tb, chromedp.CaptureScreenshot())
			file := fmt.Sprintf("%s-%s-%s.png", name, s.name, map[bool]string{true: "dark", false: "light"}[dark])
			require.NoError(tb.t, os.WriteFile(filepath.Join(screenshots, file), screenshot, 0o600))
		}
	}
	tb.resize(desktop)
	assert.Empty(tb.t, tb.eval(`(() => {
		const hidden = []
		for (const element of document.querySelectorAll("main a, main button, main input:not([type=hidden]):not(:disabled), main select, main summary, main [tabindex='0']")) {
			if (!element.checkVisibility()) continue
			element.focus({focusVisible: true})
			if (document.activeElement !== element) { hidden.push("not focusable: " + element.outerHTML); continue }
			const {x, y, width, height} = element.getBoundingClientRect()
			const top = document.elementFromPoint(x + Math.min(width / 2, innerWidth / 2), y + Math.min(height / 2, 20))
			if (!top || !(element.contains(top) || top.contains(element) || top.closest("label")?.contains(element))) hidden.push("covered: " + element.outerHTML)
			const ring = [element, element.closest("label")].some((e) => e && parseFloat(getComputedStyle(e).outlineWidth) >= 2 && getComputedStyle(e).outlineStyle !== "none")
			if (!ring) hidden.push("no ring: " + element.outerHTML)
		}
		return hidden.join("\n")
	})()`), "%s: the focus is visible", name)
}

// violations are the rules of axe that a page violates. The script is injected through the
// debugger, so that the page's policy does not have to allow it.
func (tb *tab) violations() []string {
	tb.t.Helper()
	tb.do(chromedp.Evaluate[chromedp.Void](tb.axe))
	result := runAction(tb, chromedp.Evaluate[struct {
		Passes     int
		Violations []string
	}](`axe.run().then(({passes, violations}) => ({Passes: passes.length,
		Violations: violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.html).join(" "))}))`, chromedp.EvalAwaitPromise))
	assert.Greater(tb.t, result.Passes, 5, "axe checked nothing")
	return result.Violations
}

// readQR decodes the QR code of a page from a screenshot, as a phone does.
func (tb *tab) readQR() string {
	tb.t.Helper()
	screenshot := runAction(tb, chromedp.Screenshot(chromedp.CSS(".qr")))
	cmd := exec.CommandContext(tb.t.Context(), "zbarimg", "--raw", "--quiet", "-")
	cmd.Stdin = bytes.NewReader(screenshot)
	text, err := cmd.Output()
	require.NoError(tb.t, err, "apt-get install zbar-tools")
	return strings.TrimSpace(string(text))
}
