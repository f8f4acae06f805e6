package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "control" {
		if len(os.Args) > 3 || runControl(os.Args[2]) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// gradeOf grades a program, and returns the checks that fail.
func gradeOf(t *testing.T, c candidate) (fails []string) {
	t.Helper()
	groups, err := grade(c)
	require.NoError(t, err)
	var table bytes.Buffer
	passed := printTable(&table, groups)
	t.Log("\n" + table.String())
	checks := 0
	for _, g := range groups {
		checks += len(g.results)
		for _, r := range g.results {
			if !r.passed {
				fails = append(fails, r.name)
			}
		}
	}
	assert.Equal(t, total, checks)
	assert.Equal(t, total-passed, len(fails))
	return fails
}

// build builds the program of a package.
func build(t *testing.T, dir string, args ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", program}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// program is a candidate with the routes of the task.
func program(command ...string) candidate { return candidate{command: command, shop: newPlainShop} }

// The reference shop gets everything.
func TestGrade_reference(t *testing.T) {
	t.Parallel()
	assert.Empty(t, gradeOf(t, program(build(t, "./reference", "."))))
}

// The checkout of the guide gets everything, with a guard that survives the process.
func TestGrade_checkout(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../checkout/main.go")
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(text, []byte("\nfunc main() {")))
	example := filepath.Join(t.TempDir(), "checkout.go")
	require.NoError(t, os.WriteFile(example, bytes.Replace(text, []byte("\nfunc main() {"), []byte("\nfunc mainOfExample() {"), 1), 0o600))
	adapter, err := filepath.Abs("testdata/checkout.go")
	require.NoError(t, err)
	dir := filepath.Dir(filepath.Dir(filepath.Dir(adapter))) + "/checkout" // which exists in the overlay only
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {dir + "/main.go": adapter, dir + "/checkout.go": example}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	assert.Empty(t, gradeOf(t, program(build(t, "..", "-overlay", file, "./checkout"))))
}

// The shop gets everything, through its pages.
func TestGrade_shop(t *testing.T) {
	t.Parallel()
	assert.Empty(t, gradeOf(t, candidate{command: []string{build(t, "../shop", ".")}, settings: formSettings(), shop: newFormShop}))
}

// The grader notices what each control does wrong.
func TestGrade_controls(t *testing.T) {
	t.Parallel()
	const kept = "ten kills after the last byte of the response: no invoice is lost, the order shows it or that it is not known"
	for mistake, noticed := range map[string][]string{
		naive: {
			"a gateway that creates the invoice and closes the connection: no second one, and nobody is told that there is none",
			"a gateway that redirects: the key goes nowhere else, and no invoice is made up",
			"ten double and ten tenfold clicks: one invoice each",
			"eight kills before the response is complete: no second invoice",
			"eight kills before the response is complete: nobody is told that there is none",
		},
		forgets: {kept},
		denies: {
			"ten double and ten tenfold clicks: nobody is told that there is none, neither by a click nor by the order",
			"eight kills before the response is complete: nobody is told that there is none",
		},
		chatters: {
			"the key of the gateway is in no log and not in the database",
			"a file that has the invoice of a lost response: the order shows it", // it has no such route
		},
		believes: {"a file that was made before a lost response: no second invoice, and nobody is told that there is none"},
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			assert.Subset(t, gradeOf(t, program(os.Args[0], "control", mistake)), noticed)
		})
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		code int
		text string
	}{
		{nil, 2, "name the program"},
		{[]string{"-nothing"}, 2, "not defined"},
		{[]string{"/nothing/there"}, 2, "no such file"},
		{[]string{os.Args[0], "control", "of no kind", "and too many arguments"}, 2, "does not listen"},
		{[]string{os.Args[0], "control", denies}, 1, "of 48"},
	} {
		var out bytes.Buffer
		assert.Equal(t, test.code, run(test.args, &out, &out), "%q", test.args)
		assert.Contains(t, out.String(), test.text)
	}
}
