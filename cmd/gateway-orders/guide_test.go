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
	inEach(t, func(t *testing.T, w *shop) {
		dir, day := guideDir(t), time.Now().Add(-48*time.Hour).UTC()
		lines := regexp.MustCompile(`(?m)^ {4,}(gateway-orders .*)$`).FindAllStringSubmatch(page(t, "unknown.md"), -1)
		codes := []int{exitLeft, cli.ExitDone, cli.ExitDone, cli.ExitDone, cli.ExitDone, cli.ExitDone, exitLeft, cli.ExitDone}
		if len(lines) != len(codes) {
			t.Fatalf("%d commands: %q", len(lines), lines)
		}
		table := "Order no.,Created,Amount,Status\n"
		for minute, id := range []string{"new", "paid", "A-17", "A-18", "A-19", "A-20", "new too", "paid too"} {
			if strings.HasPrefix(id, "A-") {
				w.loses(t, id)
			} else {
				w.sends(t, requestOf("", id), gateway.OutcomeSucceeded)
			}
			at := day.Add(time.Duration(600+5*minute+minute/6*10) * time.Minute)
			w.ages(t, id, time.Since(at))
			if id != "A-18" && id != "A-20" {
				table += id + "," + at.Format("2006-01-02 15:04:05") + ",10.50," + map[bool]string{true: "Paid", false: "New"}[strings.HasPrefix(id, "paid")] + "\n"
			}
		}
		check(t, os.WriteFile(filepath.Join(dir, "invoices.csv"), []byte(table), 0o600))
		check(t, os.WriteFile(filepath.Join(dir, "mygateway.json"), []byte(`{"order": "Order no.", "created": "Created", "zone": "UTC", "state": "Status", "amount": "Amount"}`), 0o600))
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

// A shell completes commands, flags and values.
func TestCompletion(t *testing.T) {
	t.Setenv(asProcess, "1")
	clitest.Complete(t, filepath.Join(guideDir(t), "gateway-orders"), map[string]string{
		"gateway-orders p": "pending prune", "gateway-orders --table x resolve --ex": "--exists", "gateway-orders export --state ": "free in flight unknown created",
		"gateway-orders export -o ": "csv json",
	})
}
