package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	source = `package x

const Limit = 3

type Pair[T any] struct {
	Name string ` + "`json:\"name\"`" + `
	twin T
}

func (p *Pair[T]) Twin() T { return p.twin }

func Over(n int) bool { return n > Limit }
`
	sourceTest = `package x_test

import "testing"

func TestOver(t *testing.T) {
	t.Run("a b/c", func(t *testing.T) { check(t, 4, true) })
	t.Run("other", func(t *testing.T) { check(t, 1, false) })
}

func TestBroken(t *testing.T) { t.Fatal("as always") }

func TestSkipped(t *testing.T) { t.Skip() }
`
	helperTest = `package x_test

import (
	"testing"

	"example.test/x"
)

func check(t *testing.T, n int, want bool) {
	if x.Over(n) != want {
		t.Fail()
	}
}
`
)

// tree writes a module with a client and a stand-in.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for file, text := range map[string]string{
		"go.mod":                   "module example.test/x\n\ngo 1.26\n",
		"go.sum":                   "",
		"code.go":                  source,
		"code_test.go":             sourceTest,
		"helper_other_test.go":     "//go:build plan9 && windows\n\n" + helperTest,
		"helper_test.go":           helperTest,
		"other_test.go":            "package x_test\n\nfunc doesNotCompile() { return 1 }\n",
		"gatewaytest/fake.go":      "package gatewaytest\n\nfunc Status() int { return 200 }\n",
		"gatewaytest/fake_test.go": "package gatewaytest\n\nimport \"testing\"\n\nfunc TestStatus(t *testing.T) {\n\tif Status() != 200 {\n\t\tt.Fail()\n\t}\n}\n",
		"docs/traceability.md":     "",
	} {
		path := filepath.Join(root, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

func one(claims ...claim) []section {
	return []section{{"Limits", []statement{said("More than three | is <over>.", claims...)}}}
}

// What is said of this repository is complete, and its table is up to date.
func TestRun(t *testing.T) {
	t.Parallel()
	require.NoError(t, run(options{root: "../.."}, statements(), io.Discard))
}

func TestRun_table(t *testing.T) {
	t.Parallel()
	root := tree(t)
	all := one(inClient("Over", "n > Limit", "n > 4 ||\n\tfalse", "TestOver/a b/c"), inClient("Pair.Twin", "p.twin", "", "TestOver"))
	err := run(options{root: root}, all, io.Discard)
	require.EqualError(t, err, "docs/traceability.md is not up to date: bash .ci/trace -update")
	require.NoError(t, run(options{root: root, update: true}, all, io.Discard))
	require.NoError(t, run(options{root: root}, all, io.Discard))

	written, err := os.ReadFile(filepath.Join(root, "docs", "traceability.md"))
	require.NoError(t, err)
	assert.Contains(t, string(written), "1 statements, 2 changes")
	assert.Contains(t, string(written), "\n| 1.1 | More than three \\| is &lt;over>. | [`Over`](../code.go) | `n > Limit` → `n > 4 \\|\\| false` | [`TestOver/a b/c`](../code_test.go) |\n"+
		"|  |  | [`Pair.Twin`](../code.go) | without `p.twin` | [`TestOver`](../code_test.go) |\n")
	require.NoError(t, os.Remove(filepath.Join(root, "docs", "traceability.md")))
	require.ErrorIs(t, run(options{root: root}, all, io.Discard), os.ErrNotExist)
}

func TestRun_incomplete(t *testing.T) {
	t.Parallel()
	root := tree(t)
	for _, tt := range []struct {
		name   string
		claims []claim
		want   string
	}{
		{"nothing", nil, `1.1: "More than three | is <over>." has no code and no test`},
		{"no test", []claim{inClient("Over", ">", "<")}, "1.1: Over: no test is named"},
		{"a test that is not there", []claim{inClient("Over", ">", "<", "TestOver", "TestUnder/a")}, "1.1: Over: there is no TestUnder in ."},
		{"a test of the other part", []claim{inStandIn("Status", "200", "404", "TestOver")}, "1.1: Status: there is no TestOver in gatewaytest"},
		{"a helper for a test", []claim{inClient("Over", ">", "<", "check")}, "1.1: Over: there is no check in ."},
		{"code that is not there", []claim{inClient("Under", ">", "<", "TestOver")}, "1.1: Under: is not declared in ."},
		{"code of the other part", []claim{inClient("Status", "200", "404", "TestOver")}, "1.1: Status: is not declared in ."},
		{"code of a test", []claim{inClient("check", "n", "m", "TestOver")}, "1.1: check: is not declared in ."},
		{"a text that is not there", []claim{inClient("Over", "<", ">", "TestOver")}, `1.1: Over: "<" is in it 0 times, not once`},
		{"a text elsewhere in the file", []claim{inClient("Over", "twin", "", "TestOver")}, `1.1: Over: "twin" is in it 0 times, not once`},
		{"a text that is there twice", []claim{inClient("Over", "n", "m", "TestOver")}, `1.1: Over: "n" is in it 5 times, not once`},
		{"a change of nothing", []claim{inClient("Over", ">", ">", "TestOver")}, "1.1: Over: the change changes nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.EqualError(t, run(options{root: root, update: true}, one(tt.claims...), io.Discard), tt.want)
		})
	}
}

// What can be named: constants, types, their fields and methods, functions.
func TestIndex_symbols(t *testing.T) {
	t.Parallel()
	code, err := newIndex(tree(t))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"Limit": "Limit = 3", "Pair.Name": "Name string `json:\"name\"`", "Pair.Twin": "func (p *Pair[T]) Twin() T { return p.twin }",
		"Over": "func Over(n int) bool { return n > Limit }",
	} {
		found := code.symbols[client][name]
		assert.Equal(t, text, string(found.source[found.start:found.end]))
	}
	assert.Contains(t, code.symbols[client], "Pair")
}

func TestRun_prove(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		claims []claim
		want   []string // in the error; none when there is no error
	}{
		{"every test notices", []claim{
			inClient("Over", "n > Limit", "n < Limit", "TestOver/a b/c", "TestOver/other", "TestOver"),
			inClient("Limit", "3", "5", "TestOver/a b/c"), inStandIn("Status", "200", "404", "TestStatus"),
		}, nil},
		{"a test does not notice", []claim{inClient("Limit", "3", "5", "TestOver", "TestOver/other")}, []string{`Limit, "5" for "3": TestOver/other does not fail`}},
		{"a change does not compile", []claim{inClient("Limit", "3", "nil", "TestOver")}, []string{`Limit, "nil" for "3": does not compile`}},
		{"a test fails anyway", []claim{inClient("Limit", "3", "5", "TestBroken")}, []string{"TestBroken does not pass on the code as it is"}},
		{"a test is skipped", []claim{inClient("Limit", "3", "5", "TestSkipped")}, []string{"TestSkipped does not pass", "TestSkipped does not fail"}},
		{"a row is not there", []claim{inClient("Limit", "3", "5", "TestOver/a b")}, []string{"TestOver/a b does not fail"}},
		{"a row has another name", []claim{inClient("Limit", "3", "5", "TestOver/a")}, []string{"TestOver/a does not pass on the code as it is"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root, log := tree(t), &strings.Builder{}
			require.NoError(t, run(options{root: root, update: true}, one(tt.claims...), log))
			err := run(options{root: root, prove: true, workers: 1}, one(tt.claims...), log)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			if tt.want == nil {
				require.NoError(t, err)
				assert.Contains(t, log.String(), "3 changes, each noticed by every test that is named for it")
			}
			left, err := os.ReadFile(filepath.Join(root, "code.go"))
			require.NoError(t, err)
			assert.Equal(t, source, string(left), "the code on disk stays as it is")
		})
	}
}

func TestRun_section(t *testing.T) {
	t.Parallel()
	root := tree(t)
	all := append(one(inClient("Limit", "3", "5", "TestBroken")), one(inStandIn("Status", "200", "404", "TestStatus"))...)
	require.NoError(t, run(options{root: root, update: true}, all, io.Discard))
	require.NoError(t, run(options{root: root, prove: true, workers: 1, section: 2}, all, io.Discard))
	require.EqualError(t, run(options{root: root, prove: true, workers: 1, section: 3}, all, io.Discard), "there are sections from 1 to 2")
}
