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

// pictures is where the pictures of all pages are kept.
var pictures = filepath.Join("browser", "out")

// A size is that of a window, in pixels of CSS.
type size struct {
	name          string
	width, height int64
}

var (
	phone   = size{"phone", 390, 844}
	desktop = size{"desktop", 1280, 900}
)

// resize waits until the page has the size, and returns how high and how wide
// its content is.
func (tb *tab) resize(s size) (height, width int64) {
	tb.t.Helper()
	tb.do(chromedp.EmulateViewport(s.width, s.height))
	content := perform(tb, chromedp.Evaluate[[]int64](fmt.Sprintf(`new Promise((done) => {
		const look = () => {
			if (innerWidth !== %d || innerHeight !== %d) return requestAnimationFrame(look)
			const {scrollHeight, scrollWidth} = document.documentElement
			done([scrollHeight, scrollWidth])
		}
		look()
	})`, s.width, s.height), chromedp.EvalAwaitPromise))
	return content[0], content[1]
}

// look checks a page for people who do not see it as most do, and that it is
// not wider than a phone; it keeps a picture of both sizes.
func (tb *tab) look(name string) {
	tb.t.Helper()
	for _, s := range []size{phone, desktop} {
		height, _ := tb.resize(s)
		tb.resize(size{s.name, s.width, height}) // all of it, with what sticks to the bottom there
		picture := perform(tb, chromedp.CaptureScreenshot())
		require.NoError(tb.t, os.WriteFile(filepath.Join(pictures, name+"-"+s.name+".png"), picture, 0o600))
		_, width := tb.resize(s)
		assert.LessOrEqual(tb.t, width, s.width, "%s on a %s", name, s.name)
		assert.Empty(tb.t, tb.violations(), "%s on a %s", name, s.name)
	}
}

// violations are the rules of axe that a page breaks. The script comes by way
// of the debugger, so the policy of the page stays as it is.
func (tb *tab) violations() []string {
	tb.t.Helper()
	tb.do(chromedp.Evaluate[chromedp.Void](tb.axe))
	return perform(tb, chromedp.Evaluate[[]string](`axe.run().then(({passes, violations}) => passes.length === 0 ? ["axe has seen nothing"] :
		violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.html).join(" ")))`, chromedp.EvalAwaitPromise))
}

// readCode reads the QR code of a page as a telephone does: from the picture.
func (tb *tab) readCode() string {
	tb.t.Helper()
	picture := perform(tb, chromedp.Screenshot(chromedp.CSS(".qr")))
	cmd := exec.CommandContext(tb.t.Context(), "zbarimg", "--raw", "--quiet", "-")
	cmd.Stdin = bytes.NewReader(picture)
	text, err := cmd.Output()
	require.NoError(tb.t, err, "run ci.sh: it installs zbarimg")
	return strings.TrimSpace(string(text))
}
