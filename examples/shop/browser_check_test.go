package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

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
	phone   = size{"phone", 390, 844}
	desktop = size{"desktop", 1280, 900}
)

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

// checkPage checks a page with axe and for horizontal overflow, and saves a
// screenshot, in both window sizes.
func (tb *tab) checkPage(name string) {
	tb.t.Helper()
	for _, s := range []size{phone, desktop} {
		height, _ := tb.resize(s)
		tb.resize(size{s.name, s.width, height}) // the full page, with the sticky bar at its bottom
		screenshot := runAction(tb, chromedp.CaptureScreenshot())
		require.NoError(tb.t, os.WriteFile(filepath.Join(screenshots, name+"-"+s.name+".png"), screenshot, 0o600))
		_, width := tb.resize(s)
		assert.LessOrEqual(tb.t, width, s.width, "%s on a %s", name, s.name)
		assert.Empty(tb.t, tb.violations(), "%s on a %s", name, s.name)
	}
}

// violations returns the axe rules that a page violates. The script is
// injected through the debugger, so the page's policy does not have to allow
// it.
func (tb *tab) violations() []string {
	tb.t.Helper()
	tb.do(chromedp.Evaluate[chromedp.Void](tb.axe))
	return runAction(tb, chromedp.Evaluate[[]string](`axe.run().then(({passes, violations}) => passes.length === 0 ? ["axe checked nothing"] :
		violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.html).join(" ")))`, chromedp.EvalAwaitPromise))
}

// readQR decodes the QR code of a page from a screenshot, as a phone does.
func (tb *tab) readQR() string {
	tb.t.Helper()
	screenshot := runAction(tb, chromedp.Screenshot(chromedp.CSS(".qr")))
	cmd := exec.CommandContext(tb.t.Context(), "zbarimg", "--raw", "--quiet", "-")
	cmd.Stdin = bytes.NewReader(screenshot)
	text, err := cmd.Output()
	require.NoError(tb.t, err, "run ci.sh: it installs zbarimg")
	return strings.TrimSpace(string(text))
}
