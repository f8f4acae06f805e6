package main

import (
	"strings"
	"testing"

	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// A count of any size is no more than what there is.
func TestPending_many(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-17", "A-18")
		want(t, w.run("pending -n 9223372036854775807"), exitLeft, "A-17", "A-18", "2 orders are unknown")
		want(t, w.run("pending -n 9223372036854775808"), cli.ExitUsage, "--most: it is a number such as 20")
		want(t, w.run("pending -n 1"), exitLeft, "There are more")
	})
}

// A name of the table is checked before anything is done with it, and not repeated.
func TestTable_hostile(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17")
	for _, name := range []string{
		`gateway_orders"; DROP TABLE gateway_orders; --`, "gateway_orders--", "o'", "a\x1b[31mb", "a\u202eb", "a\x00b", strings.Repeat("a", 59), "1a", "sqlite_master", "main.gateway_orders",
	} {
		for _, command := range []string{"pending", "migrate", "prune"} {
			got := w.run(command, "--table", name)
			if command == "prune" {
				got = w.run("prune --older-than 400d", "--table", name)
			}
			if got.code == cli.ExitDone || strings.ContainsAny(got.stdout+got.err, "\x1b\u202e\x00") {
				t.Errorf("%q: %+q", name, []string{got.stdout, got.err})
			}
		}
	}
	want(t, w.run("pending"), exitLeft, "A-17")
}
