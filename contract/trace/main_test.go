package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The statements of this repository are complete, and its table is up to date.
func TestRun(t *testing.T) {
	require.NoError(t, run("../..", statements, false))
}

// tree writes a repository with two modules.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for file, text := range map[string]string{
		"code.go":                  "package x\n\nconst Limit = 3\n\ntype Pair[T any] struct{ Name string }\n\nfunc (p *Pair[T]) Twin() {}\n\nfunc low() {}\n",
		"gatewaytest/fake.go":      "package gatewaytest\n\nfunc Status() int { return 200 }\n",
		"module/deep/deep_test.go": "package deep\n\nfunc TestDeep() {}\n\nfunc check() {}\n\ntype suite struct{}\n\nfunc (suite) TestNot() {}\n",
		"docs/traceability.md":     "",
		".hidden/a_test.go":        "package a\n\nfunc TestHidden() {}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
	}
	return root
}

func TestRun_update(t *testing.T) {
	root := tree(t)
	good := "# a comment\n## Limits\nI-1 At most <three>. | Limit Pair.Name Pair.Twin gatewaytest.Status | TestDeep\n"
	require.EqualError(t, run(root, good, false), "docs/traceability.md is not up to date: bash .ci/trace -update")
	require.NoError(t, run(root, good, true))
	require.NoError(t, run(root, good, false))
	written, err := os.ReadFile(filepath.Join(root, "docs", "traceability.md"))
	require.NoError(t, err)
	assert.Contains(t, string(written), "\n## Limits\n\n| | statement | code | tests |\n|---|---|---|---|\n"+
		"| I-1 | At most &lt;three>. | [`Limit`](../code.go)<br>[`Pair.Name`](../code.go)<br>[`Pair.Twin`](../code.go)<br>"+
		"[`gatewaytest.Status`](../gatewaytest/fake.go) | [`TestDeep`](../module/deep/deep_test.go) |\n")
}

func TestRun_incomplete(t *testing.T) {
	root := tree(t)
	for statement, want := range map[string]string{
		"":                              "there are no statements",
		"I-1 a | Limit |":               "want a line `I-1 text | code | tests`: I-1 a | Limit |",
		"I-2 a | Limit | TestDeep":      "want a line `I-1 text | code | tests`: I-2 a | Limit | TestDeep",
		"I-1 a |  | TestDeep":           "I-1: it names no code or no test",
		"I-1 a | Limit |  ":             "want a line `I-1 text | code | tests`: I-1 a | Limit |",
		"I-1 a | low | TestDeep":        "I-1: there is no low",
		"I-1 a | Status | TestDeep":     "I-1: there is no Status",
		"I-1 a | TestDeep | TestDeep":   "I-1: there is no TestDeep",
		"I-1 a | Limit | check":         "I-1: there is no check",
		"I-1 a | Limit | TestNot":       "I-1: there is no TestNot",
		"I-1 a | Limit | TestHidden":    "I-1: there is no TestHidden",
		"I-1 a | Limit | TestDeep Gone": "I-1: there is no Gone",
	} {
		assert.EqualError(t, run(root, statement, true), want, statement)
	}
	require.Error(t, run(filepath.Join(root, "elsewhere"), "I-1 a | Limit | TestDeep", true))
	require.NoError(t, os.Remove(filepath.Join(root, "docs", "traceability.md")))
	require.ErrorIs(t, run(root, "I-1 a | Limit | TestDeep", false), os.ErrNotExist)
}
