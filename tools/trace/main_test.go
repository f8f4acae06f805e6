package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a repository that is in order, with one file changed. A § stands for the
// I- of a number, so that this file names no statement of the real one.
func write(t *testing.T, name, old, by string) string {
	root := t.TempDir()
	for file, text := range map[string]string{
		"docs/interface.md": "## A\n\n- <a id=\"i-1\"></a>**§1** (*documented*; `Pair.Name`,\n  `Pair.Twin`): At most\n  two.\n",
		"x.go":              "package x\n\n// A Pair is two.\ntype Pair[T any] struct {\n\tName string // of both\n}\n\n// Twin is one.\nfunc (*Pair[T]) Twin() {}\n",
		"x_test.go":         "package x\n\n// Two are two.\n// §1: at most\nfunc TestTwo() {}\n",
		"internal/y/y.go":   "package y\n\nfunc Undocumented() {}\n",
	} {
		if file == name {
			text = strings.Replace(text, old, by, 1)
		}
		path := filepath.Join(root, file)
		_ = os.MkdirAll(filepath.Dir(path), 0o700) // if it fails, so does the next line
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "§", "I-")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRun(t *testing.T) {
	const row = "\nA\n\n§1 (documented): At most two.\n  code  x.go: Pair.Name\n  code  x.go: Pair.Twin\n  test  x_test.go: "
	const bad = "docs/interface.md: §1 has no test, or is there twice, or under another anchor"
	for _, tt := range []struct{ name, file, old, by, want string }{ // wanted is the table, or the first error
		{"in order", "", "", "", row + "TestTwo\n"},
		{"a citation on a row of a table", "x_test.go", "func TestTwo() {}", "var rows = []int{\n\t2, // §1\n}", row + "rows\n"},
		{"a statement without a test", "x_test.go", "// §1: at most\n", "", bad},
		{"a number in a sentence is no citation", "x_test.go", "§1: at", "See §1,\n// §1 at", bad},
		{"a test that cites what is not there", "x_test.go", "§1", "§1, §2", "x_test.go: there is no §2"},
		{"a comment that names what is not there", "x.go", "of both", "of both: §3", "x.go: there is no §3"},
		{"a citation on a helper", "x_test.go", "TestTwo", "two", "x_test.go: §1 is cited outside of a test"},
		{"a function without a comment", "x.go", "package x\n", "package x\n\nfunc New() {}\n", "x.go: New has no comment"},
		{"a field without a comment", "x.go", " // of both", "", "x.go: Pair.Name has no comment"},
		{"a name in a group without a comment", "x.go", "package x\n", "package x\n\n// Of a group.\nconst (\n\tA = 1\n)\n", "x.go: A has no comment"},
		{"a statement twice", "docs/interface.md", "- ", "- <a id=\"i-1\"></a>**§1** (*not stated*; `Pair`): At most two.\n- ", bad},
		{"a statement about code that is not there", "docs/interface.md", ".Name", ".Size", "docs/interface.md: §1: there is no Pair.Size"},
		{"a statement with another mark", "docs/interface.md", "documented", "assumed", "docs/interface.md: of 1 statements, 0 can be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := run(write(t, tt.file, tt.old, tt.by))
			if err != nil {
				got, _, _ = strings.Cut(err.Error(), "\n")
			}
			if got != strings.ReplaceAll(tt.want, "§", "I-") {
				t.Errorf("%s\nis not %s", got, tt.want)
			}
		})
	}
}
