package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// A file of the gateway ends what it decides, once --apply is given, and the rest is listed.
func TestReconcile(t *testing.T) {
	inBoth(t, func(t *testing.T, w *shop) {
		day := time.Now().Add(-48 * time.Hour).UTC()
		w.loses(t, "exists", "absent", "late")
		for _, id := range []string{"before", "after", "altered"} {
			w.sends(t, requestOf("", id), gateway.OutcomeSucceeded)
		}
		file := "Order no.,Invoice,Created,Amount\n"
		for id, hour := range map[string]time.Duration{"before": 8, "exists": 9, "absent": 10, "altered": 11, "after": 12} {
			w.ages(t, id, (48-hour)*time.Hour)
		}
		for i, row := range []struct{ id, amount string }{{"before", "10.5"}, {"exists", "10.50"}, {"altered", "10.51"}, {"after", "10.500"}, {"other", "3"}} {
			file += fmt.Sprintf("%s,inv-%d,%s,%s\n", row.id, i, day.Add(map[int]time.Duration{0: 8, 1: 9, 2: 11, 3: 12, 4: 15}[i]*time.Hour).Format(time.RFC3339), row.amount)
		}
		line := []string{
			"reconcile", "--file", "-", "--format", "csv", "--order-column", "Order no.", "--invoice-column", "Invoice", "--time-column", "Created",
			"--amount-column", "Amount", "--from", day.Format(time.RFC3339), "--until", day.Add(24 * time.Hour).Format(time.RFC3339),
		}
		reconcile := func(file string, more ...string) outcome {
			return w.runIn(t.Context(), file, append(slices.Clone(line), more...)...)
		}
		want(t, reconcile(file), exitLeft, "5 rows in the file", "1 unknown: it exists\n", "1 unknown: it does not exist",
			"0 created: it is missing at the gateway", "0 twice at the gateway", "1 another amount", "1 only at the gateway",
			"1 unknown: the file does not decide it", "exists unknown: it exists 3 ", "altered another amount 4 10.50 10.50 10.51 inv-2 -", "other only at the gateway 6 - 3 inv-4 -",
			"WHY IT STAYS UNKNOWN", "late 20", "Nothing was changed. To end the 2 that the file decides: the same with --apply --by NAME.")
		want(t, w.run("pending"), exitLeft, "3 orders are unknown")

		report := decode[reportJSON](t, reconcile(file, "-o", "json").stdout)
		if len(report.Differences) != 4 || len(report.Undecided) != 1 || report.Rows != 5 || report.Counts["another amount"] != 1 || report.ended() != 0 {
			t.Errorf("%+v", report)
		}
		cut := strings.Join(slices.Delete(strings.SplitAfter(file, "\n"), 4, 5), "") // without the order after
		want(t, reconcile(cut, "--apply", "--by", "anna", "--dry-run"), cli.ExitUsage, "there is no flag --dry-run here")
		want(t, reconcile(cut), exitLeft, "0 unknown: it does not exist", "after created: it is missing at the gateway - 10.50 10.50 - -", "absent 20")

		want(t, reconcile(file, "--apply", "--by", "anna"), exitLeft, "2 of 2 orders were ended.", "exists unknown: it exists 3 10.50 10.50 10.50 inv-1 yes")
		want(t, w.run("show exists"), cli.ExitDone, "created", "anna", "inv-1")
		want(t, w.run("show absent"), cli.ExitDone, "state free", "anna")
		want(t, w.run("pending"), exitLeft, "1 order is unknown", "late")
	})
}

// A file that agrees with the table leaves nothing to do; one that is doubtful does nothing.
func TestReconcile_file(t *testing.T) {
	inBoth(t, func(t *testing.T, w *shop) {
		w.loses(t, "A-17")
		run := func(text, line string) outcome { return w.runIn(t.Context(), text, strings.Fields(line)...) }
		want(t, run("order_id\nA-17\nA-17", "reconcile --file - --format csv --apply --by anna"), cli.ExitFailed, "--file: export: row 3: ", "nothing was changed")
		want(t, run("order\nA-17\n", "reconcile --file - --format csv --apply --by anna"), cli.ExitFailed, "--file: row 1: the column of --order-column is not in the header", "nothing was changed")
		want(t, run("order_id,at\nA-17,x\n", "reconcile --file - --format csv --time-column at"), cli.ExitFailed, "--file: row 2: the column of --time-column is \"x\", and must be a time with its zone")
		want(t, run("order_id\nA-17\n", "reconcile --file - --format csv --time-column order_id"), cli.ExitFailed, "two of the columns have the same name")
		want(t, run("", "reconcile --file /no/such.csv"), cli.ExitFailed, "--file: no such file or directory")
		want(t, w.run("pending"), exitLeft)
		want(t, run(`{"order_id":"A-17"}`+"\n", "reconcile --file - --format jsonl --apply --by anna"), cli.ExitDone, "1 of 1 orders were ended.")
		want(t, run(`{"order_id":"A-17"}`+"\n", "reconcile --file - --format jsonl"), cli.ExitDone)
		w.loses(t, "A-18")
		want(t, run(`{"order_id":"A-17"}`+"\n", "reconcile --file - --format jsonl"), exitLeft, "1 unknown: the file does not decide it")
		want(t, run(`{"order_id":"A-17"}`+"\n", "reconcile --file - --format jsonl --merchant north"), exitLeft, "1 only at the gateway")
	})
}

// What was ended before the database failed is listed.
func TestReconcile_failure(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17", "A-18")
	_, err := w.raw.Exec(`CREATE TRIGGER full BEFORE UPDATE ON gateway_orders WHEN NEW.order_id = 'A-18' BEGIN SELECT RAISE(ABORT, 'no space left'); END`)
	check(t, err)
	args := strings.Fields("reconcile --file - --format csv --apply --by anna")
	want(t, w.runIn(t.Context(), "order_id\nA-17\nA-18\n", args...), cli.ExitFailed, "A-17 unknown: it exists 2 10.50 10.50 - yes",
		"1 orders were ended, and one more may be: run it again, which lists what is left", "no space left")
	want(t, w.run("pending"), exitLeft, "1 order is unknown", "A-18")
}
