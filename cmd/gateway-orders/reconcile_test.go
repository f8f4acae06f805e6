package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
)

// A file of the gateway ends what it decides, once --apply is given, and the rest is listed.
func TestReconcile(t *testing.T) {
	inEach(t, func(t *testing.T, w *shop) {
		day := time.Now().Add(-48 * time.Hour).UTC()
		at := func(minute int) time.Time { return day.Add(time.Duration(minute) * time.Minute) }
		minutes := map[string]int{"before": 480, "paid": 485, "exists": 490, "absent": 495, "altered": 440, "after": 515, "later": 520, "late": 1439}
		for _, id := range []string{"before", "paid", "altered", "after", "later"} {
			w.sends(t, requestOf("", id), gateway.OutcomeSucceeded)
		}
		w.loses(t, "exists", "absent", "late")
		for id, minute := range minutes {
			w.ages(t, id, time.Since(at(minute)))
		}
		file := "Order no.;Invoice;Created;Amount;Status\n"
		for i, row := range []struct{ id, amount, state string }{
			{"before", "10,5", "New"}, {"paid", "10,50", "Paid"}, {"exists", "10,50", "New"}, {"altered", "10,51", "Paid"}, {"after", "10,500", "Paid"}, {"later", "10,5", "New"},
		} {
			file += fmt.Sprintf("%s;inv-%d;%s;%s;%s\n", row.id, i, at(minutes[row.id]).Format("02.01.2006 15:04:05"), row.amount, row.state)
		}
		far := at(900).Format("02.01.2006 15:04:05")
		file += "other;inv-6;" + far + ";3;New\n;by hand;" + far + ";3;New\nx;inv-7;" + far[:10] + ";3;New\n"
		settings := filepath.Join(t.TempDir(), "mygateway.json")
		check(t, os.WriteFile(settings, []byte(`{"order":"Order no.","invoice":"Invoice","created":"Created","amount":"Amount","zone":"UTC","timeLayout":"02.01.2006 15:04:05","decimalComma":true}`), 0o600))
		line := []string{
			"reconcile", "--file", "-", "--settings", settings, "--state-column", "Status", "--from", day.Format(time.RFC3339), "--until", day.Add(24 * time.Hour).Format(time.RFC3339),
		}
		reconcile := func(file string, more ...string) outcome {
			return w.runIn(t.Context(), file, append(slices.Clone(line), more...)...)
		}
		unsaid := reconcile(file)
		want(t, unsaid, exitLeft, "0 unknown: it does not exist", "name them by --untouched")
		want(t, reconcile(file, "--untouched", "New"), exitLeft, "9 rows in the file", "1 that cannot be read whole", "1 without an order", "1 unknown: it exists\n", "1 unknown: it does not exist",
			"0 created: it is missing at the gateway", "0 twice at the gateway", "1 another amount", "2 only at the gateway",
			"1 unknown: the file does not decide it", "10 the column of created is", "exists unknown: it exists 4 ", "altered another amount 5 10.50 10.50 10.51 inv-3 -", "other only at the gateway 8 - 3 inv-6 -",
			"WHY IT STAYS UNKNOWN", "late 20", "Nothing was changed. To end the 2 that the file decides: the same with --apply --by NAME.")
		want(t, w.run("pending"), exitLeft, "3 orders are unknown")
		want(t, reconcile(file, "--untouched", "New", "--margin", "30m"), exitLeft, "0 unknown: it does not exist")

		report := decode[reportJSON](t, reconcile(file, "--untouched", "New", "-o", "json").stdout)
		if len(report.Differences) != 5 || len(report.Undecided) != 1 || report.Rows != 9 || len(report.Unread) != 1 || report.NoOrder != 1 || report.Counts["another amount"] != 1 || report.ended() != 0 {
			t.Errorf("%+v", report)
		}
		cut := strings.Join(slices.Delete(strings.SplitAfter(file, "\n"), 5, 6), "") // without the order after
		want(t, reconcile(cut, "--untouched", "New"), exitLeft, "0 unknown: it does not exist", "after created: it is missing at the gateway - 10.50 10.50 - -", "absent 20")
		want(t, reconcile(file, "--where", "Status=New"), exitLeft, "6 rows in the file", "3 others that --where leaves out", "paid created: it is missing at the gateway")

		want(t, reconcile(file, "--untouched", "New", "--apply", "--by", "anna"), exitLeft, "2 of 2 orders were ended.", "exists unknown: it exists 4 10.50 10.50 10.50 inv-2 yes")
		want(t, w.run("show exists"), cli.ExitDone, "created", "anna", "inv-2")
		want(t, w.run("show absent"), cli.ExitDone, "state free", "anna", `in which ["New"] are untouched`)
		want(t, w.run("pending"), exitLeft, "1 order is unknown", "late")
	})
}

// A file that agrees with the table leaves nothing to do; one that cannot be read does nothing.
func TestReconcile_file(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17")
	run := func(text, line string) outcome { return w.runIn(t.Context(), text, strings.Fields(line)...) }
	want(t, run("order\nA-17\n", "reconcile --file - --apply --by anna"), cli.ExitFailed, `--file: export: the header of the file: it has not the column of order: name it in the settings`, "nothing was changed")
	want(t, run("order_id,at\nA-17,x\n", "reconcile --file - --time-column at"), exitLeft, `2 the column of created is "x"`, "row 2 names it, and cannot be read whole")
	want(t, run("order_id\nA-17\n", "reconcile --file - --time-column order_id"), cli.ExitFailed, "name one column twice")
	want(t, run("", "reconcile --file /no/such.csv"), cli.ExitFailed, "--file: no such file or directory")
	want(t, run("", "reconcile --file - --settings /no/such.json"), cli.ExitFailed, "--settings: no such file or directory")
	want(t, w.run("pending"), exitLeft)
	want(t, run(`{"order_id":"A-17"}`+"\n", "reconcile --file - --apply --by anna"), cli.ExitDone, "1 of 1 orders were ended.")
	want(t, run(`{"order_id":"A-17"}`+"\n", "reconcile --file -"), cli.ExitDone)
	w.loses(t, "A-18")
	want(t, run(`{"order_id":"A-17"}`+"\n", "reconcile --file -"), exitLeft, "1 unknown: the file does not decide it")
	want(t, run(`{"order_id":"A-17"}`+"\n", "reconcile --file - --merchant north"), exitLeft, "1 only at the gateway")
}

// What was ended before the database failed is listed.
func TestReconcile_failure(t *testing.T) {
	w := newSQLite(t)
	w.loses(t, "A-17", "A-18")
	_, err := w.raw.Exec(`CREATE TRIGGER full BEFORE UPDATE ON gateway_orders WHEN NEW.order_id = 'A-18' BEGIN SELECT RAISE(ABORT, 'no space left'); END`)
	check(t, err)
	args := strings.Fields("reconcile --file - --apply --by anna")
	want(t, w.runIn(t.Context(), "order_id\nA-17\nA-18\n", args...), cli.ExitFailed, "A-17 unknown: it exists 2 10.50 10.50 - yes",
		"1 orders were ended, and one more may be: run it again, which lists what is left", "no space left")
	want(t, w.run("pending"), exitLeft, "1 order is unknown", "A-18")
}
