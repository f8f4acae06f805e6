package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/cli/clitest"
)

// shell runs a line of a guide as a shell does, where the command has the name that the guide gives it.
func (w *shop) shell(t *testing.T, dir, line string) outcome {
	t.Helper()
	args := strings.Join(w.args, " ")
	process := exec.Command("sh", "-c", strings.Replace(line, "gateway-orders ", "gateway-orders "+args+" ", 1))
	process.Dir = dir
	process.Env = append(os.Environ(), asProcess+"=1", envDB+"="+w.url, "PATH="+dir+":"+os.Getenv("PATH"))
	output, err := process.CombinedOutput()
	if process.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{code: process.ProcessState.ExitCode(), stdout: string(output)}
}

// guideDir has the command, by its name.
func guideDir(t *testing.T) string {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	check(t, err)
	dir := t.TempDir()
	check(t, os.Symlink(self, filepath.Join(dir, "gateway-orders")))
	return dir
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	check(t, err)
	return string(text)
}

// Every command of the guide does what it says, in its order.
func TestGuide(t *testing.T) {
	inBoth(t, func(t *testing.T, w *shop) {
		dir, day := guideDir(t), time.Now().Add(-48*time.Hour).UTC()
		lines := regexp.MustCompile(`(?m)^ {4,}(gateway-orders .*)$`).FindAllStringSubmatch(page(t, "unknown.md"), -1)
		codes := []int{exitLeft, cli.ExitDone, cli.ExitDone, cli.ExitDone, cli.ExitDone, cli.ExitDone, exitLeft, cli.ExitDone}
		if len(lines) != len(codes) {
			t.Fatalf("%d commands: %q", len(lines), lines)
		}
		w.loses(t, "A-17", "A-18", "A-19", "A-20")
		w.sends(t, requestOf("", "A-16"), gateway.OutcomeSucceeded)
		w.sends(t, requestOf("", "A-21"), gateway.OutcomeSucceeded)
		table := "order_id,created,amount\n"
		for hour, id := range []string{"A-16", "A-17", "A-18", "A-19", "A-20", "A-21"} {
			at := day.Add(time.Duration(10+hour) * time.Hour)
			w.ages(t, id, time.Since(at))
			if id != "A-18" && id != "A-20" {
				table += id + "," + at.Format(time.RFC3339) + ",10.50\n"
			}
		}
		check(t, os.WriteFile(filepath.Join(dir, "invoices.csv"), []byte(table), 0o600))
		given := strings.NewReplacer("TOKEN", decode[pendingJSON](t, w.run("pending -o json").stdout).Pending[0].Token,
			"2026-11-22T00:00:00Z", day.Format(time.RFC3339), "2026-11-23T00:00:00Z", day.Add(24*time.Hour).Format(time.RFC3339))
		for i, line := range lines {
			if got := w.shell(t, dir, given.Replace(line[1])); got.code != codes[i] {
				t.Fatalf("%s: exit code %d, want %d\n%s", line[1], got.code, codes[i], got.stdout)
			}
		}
		want(t, w.run("pending"), cli.ExitDone)
		for id, state := range map[string]string{"A-17": "created", "A-18": "free", "A-19": "created", "A-20": "free"} {
			want(t, w.run("show "+id), cli.ExitDone, "state "+state, "by anna")
		}
	})
}

// What a restored table has forgotten is marked, and then ended as any unknown order.
func TestGuide_restore(t *testing.T) {
	inBoth(t, func(t *testing.T, w *shop) {
		text := regexp.MustCompile("(?s)```sql\n(.*?)```").FindStringSubmatch(page(t, "production.md"))[1]
		if len(w.args) > 0 {
			text = strings.Replace(text, "gateway_orders", w.args[1], 1)
		}
		w.loses(t, "known")
		kind, lost := "text", "lost_"+strings.TrimPrefix(strings.Join(w.args, ""), "--table")
		if len(w.args) > 0 {
			kind = "timestamptz"
		}
		text = strings.Replace(text, "FROM lost", "FROM "+lost, 1)
		for _, statement := range []string{
			`CREATE TABLE ` + lost + ` (order_id text, sent_at ` + kind + `)`,
			`INSERT INTO ` + lost + ` VALUES ('forgotten', '2026-11-22T03:14:15.000Z'), ('known', '2026-11-22T03:14:15.000Z')`,
			text,
			`DROP TABLE ` + lost,
		} {
			_, err := w.raw.ExecContext(t.Context(), statement)
			check(t, err)
		}
		want(t, w.run("pending"), exitLeft, "2 orders are unknown", "known - 20", "forgotten - 2026-11-22 03:14:15 UTC once - its row was lost with a backup")
		want(t, w.run("evidence forgotten"), cli.ExitDone, "Search from 2026-11-22 02:59:15 UTC", "create with this order id")
		if lease, err := w.guard.Begin(t.Context(), requestOf("", "forgotten")); err != nil || lease.State != gateway.OrderUnknown {
			t.Errorf("it is sent again: %+v, %v", lease, err)
		}
		want(t, w.run("resolve forgotten --exists --by anna"), cli.ExitDone)
	})
}

// A shell completes commands, flags and values.
func TestCompletion(t *testing.T) {
	t.Setenv(asProcess, "1")
	clitest.Complete(t, filepath.Join(guideDir(t), "gateway-orders"), map[string]string{
		"gateway-orders p": "pending prune", "gateway-orders --table x resolve --ex": "--exists", "gateway-orders export --state ": "free in flight unknown created",
		"gateway-orders export -o ": "csv json",
	})
}
