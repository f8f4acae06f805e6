package main

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// No output has a character that controls a terminal or the direction of text. In JSON the text stays
// exact.
func TestOutput_controls(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		const hostile = "a\x1b[31m\x7f\u009b2J\u202e\u200b\ufeff\U000e0041\r\n\tz"
		id := "A\u202e\u009b-17"
		o := requestOf("", id)
		_, err := w.guard.Begin(t.Context(), o)
		check(t, err)
		_, err = w.guard.End(t.Context(), o, gateway.OrderRecord{
			Outcome: gateway.OutcomeUnknown, Request: o.Request, Body: []byte(hostile), Cause: hostile,
		})
		check(t, err)
		for _, line := range []string{"pending", "pending -o json", "export", "export -o json"} {
			got := w.run(line)
			if i := strings.IndexFunc(got.stdout+got.err, func(char rune) bool {
				return char != '\n' && char != '\t' && unicode.In(char, unicode.Cc, unicode.Cf)
			}); i >= 0 {
				t.Errorf("%s: %q", line, (got.stdout + got.err)[i:])
			}
		}
		for _, line := range []string{"show", "evidence"} {
			got := w.run(line+" -o json", id)
			want(t, got, cli.ExitDone, `"body": "a\u001b[31m\u007f\u009b2J\u202e\u200b\ufeff\udb40\udc41\r\n\tz"`)
			if strings.ContainsAny(got.stdout, "\x7f\u009b\u202e\u200b\ufeff\U000e0041") {
				t.Errorf("%q", got.stdout)
			}
		}
		if o := decode[orderJSON](t, w.run("show -o json", id).stdout); o.Body != hostile || o.Cause != hostile || o.OrderID != id {
			t.Errorf("%+v", o)
		}
		if o := decode[orderJSON](t, w.run("export -o json").stdout); o.Body != hostile || o.Cause != hostile || o.OrderID != id {
			t.Errorf("%+v", o)
		}
		rows, err := csv.NewReader(strings.NewReader(w.run("export").stdout)).ReadAll()
		check(t, err)
		const shown = `a\u001b[31m\u007f\u009b2J\u202e\u200b\ufeff\udb40\udc41\u000d` + "\n\tz"
		body, cause := rows[1][slices.Index(rows[0], "body")], rows[1][slices.Index(rows[0], "cause")]
		if body != shown || cause != shown {
			t.Errorf("%q, %q", body, cause)
		}
	})
}
