package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// build builds the program in a folder of this one.
func build(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// reasons are the names that the problems begin with, each once.
func reasons(problems []string) (names []string) {
	for _, problem := range problems {
		name, _, _ := strings.Cut(problem, ":")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// The program with the client passes all tasks. The control fails each, for these reasons and no
// others, as README.md has them.
func TestTasks(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	programs := map[string]string{"library": build(t, "library"), "plain": build(t, "plain")}
	control := map[string][]string{
		"checkout":       {"doubled", "astray"},
		"restart":        {"doubled"},
		"processes":      {"doubled"},
		"page":           {"denied"},
		"reconciliation": {"denied", "doubled"},
		"deploy":         {"doubled"},
	}
	assert.Len(t, tasks(), len(control))
	for _, k := range tasks() {
		assert.Contains(t, string(readme), "| "+k.name+" | passes | `"+strings.Join(control[k.name], "`, `")+"` |\n")
		t.Run("library/"+k.name, func(t *testing.T) {
			t.Parallel()
			problems, err := grade(k, programs["library"], patience)
			require.NoError(t, err)
			assert.Empty(t, problems)
		})
		t.Run("plain/"+k.name, func(t *testing.T) {
			t.Parallel()
			problems, err := grade(k, programs["plain"], patience)
			require.NoError(t, err)
			t.Log(strings.Join(problems, "\n"))
			assert.ElementsMatch(t, reasons(problems), control[k.name])
		})
	}
}

// A program that does everything but list its open orders hides them.
func TestTasks_hidden(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	script := "#!/bin/sh\n[ \"$1\" = pending ] || exec " + build(t, "library") + " \"$@\"\n"
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700)) // #nosec G306 -- it is run
	for _, k := range tasks() {
		if k.name == "checkout" || k.name == "page" || k.name == "reconciliation" {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				problems, err := grade(k, program, 0)
				require.NoError(t, err)
				assert.Equal(t, []string{"hidden"}, reasons(problems))
			})
		}
	}
}

// No task is passed by a program that does nothing, says what is not so, or fails.
func TestTasks_useless(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ script, reason string }{
		"nothing":  {"exit 0", "no answer"},
		"failure":  {"exit 1", "it fails"},
		"fiction":  {`sed 's/.*"order":"\([^"]*\)".*/{"order":"\1","state":"created","invoice":{}}/'`, "invented"},
		"modesty":  {`sed 's/.*"order":"\([^"]*\)".*/{"order":"\1","state":"unknown"}/'`, "not created"},
		"chatter":  {"echo hello; cat >/dev/null", "not a line of the contract"},
		"own word": {`sed 's/.*"order":"\([^"]*\)".*/{"order":"\1","state":"fine"}/'`, "order A-1 has a state that is not in the contract"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "program")
			require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+test.script+"\n"), 0o700)) // #nosec G306 -- it is run
			problems, err := grade(tasks()[0], program, patience)
			require.NoError(t, err)
			assert.Contains(t, reasons(problems), test.reason)
			for _, k := range tasks()[1:] {
				problems, err := grade(k, program, patience)
				require.NoError(t, err)
				assert.NotEmpty(t, problems, k.name)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"-nothing"}, 2, "not defined"},
		{nil, 2, "does not name a program"},
		{[]string{"-program", "/nothing/there"}, 2, "does not name a program"},
		{[]string{"-program", os.Args[0], "-task", "another"}, 2, "there is no task another"},
		{[]string{"-program", "/bin/true", "-task", "page"}, 1, "FAIL page"},
	} {
		var out bytes.Buffer
		assert.Equal(t, test.code, command(test.args, &out, &out), "%q", test.args)
		assert.Contains(t, out.String(), test.text)
	}
}
