package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	code     = "package p\n\nfunc Less(a, b int) bool {\n\treturn a < b\n}\n"
	survivor = "p.go\tLess\treturn a [< → <=] b"
	listed   = survivor + "\tsurvived\twhy\n"
	gone     = "p.go\tF\ta [&& → ||] b"
	removed  = "to be removed from known.txt: the tests notice it, or it is no more:\n"
)

// exact notices both changes of Less, loose only the opposite.
var exact, loose = testOf("!Less(1, 2) || Less(2, 1) || Less(1, 1)"), testOf("!Less(1, 2)")

func testOf(condition string) string {
	return "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Exit\n\nfunc TestLess(t *testing.T) {\n\tif " + condition + " {\n\t\tt.Fail()\n\t}\n}\n"
}

// runIn runs the command in a module of one package, and returns the output, the
// baseline afterwards and the error.
func runIn(t *testing.T, code, test, baseline string, change func(*options)) (output, page, err string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26.0\n", "p.go": code, "p_test.go": test, "known.txt": baseline} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	o := options{root: root, baseline: "known.txt", floor: 50, workers: 1, memory: 3_000_000, patience: 2 * time.Second, out: &out}
	if change != nil {
		change(&o)
	}
	if failure := run(t.Context(), o, []string{"."}); failure != nil {
		err = failure.Error()
	}
	content, _ := os.ReadFile(filepath.Join(root, "known.txt"))
	return out.String(), string(content), err
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, code, test, baseline string
		change                     func(*options)
		output, err                string // they contain it; the error is "" when none is expected
	}{
		{"all are killed", code, exact, "#\n", nil, "all that compile              2        0         0             0          0 100.0 %", ""},
		{"a survivor is listed", code, loose, listed, nil, "survived     p.go: Less: return a [< → <=] b", ""},
		{"a survivor is not listed", code, loose, "#\n", nil, "not in known.txt:\n" + survivor, "1 survivors are not in known.txt"},
		{"a listed one is killed", code, exact, listed, nil, removed + survivor, ""},
		{"a listed one is gone", code, exact, gone + "\tsurvived\twhy\n", nil, removed + gone, ""},
		{"fewer than the floor are killed", code, loose, listed, func(o *options) { o.floor = 51 }, "50.0 %", "all that compile: less than 51 % are killed"},
		{"fewer than the floor are killed of a file", code, loose, listed, func(o *options) { o.floor, o.each = 51, "p.go" }, "p.go                          1        1         0             0          0  50.0 %", "p.go: less than 51 % are killed"},
		{"a file to be judged on its own is not there", code, exact, "#\n", func(o *options) { o.each = "p.go q.go" }, "100.0 %", "q.go is not among the files"},
		{
			"a test that never ends is not killed", "package p\n\nfunc Less(a, b int) bool {\n\tfor a != b {\n\t\ta--\n\t}\n\treturn a == b\n}\n",
			testOf("!Less(2, 1)"), "#\n", nil, "timed out    p.go: Less: a[-- → ++]", "",
		},
		{
			"memory that is over is not killed", "package p\n\nfunc Less(a, b int) bool {\n\treturn len(make([]byte, b-a)) == 1\n}\n",
			testOf("!Less(1<<33, 1<<33+1)"), "#\n", func(o *options) { o.floor = 0 }, "out of memory p.go: Less: return len(make([]byte, b[- → +]a)) == 1", "",
		},
		{"what does not compile is left out", "package p\n\nfunc Less(a, b string) string {\n\treturn a + b\n}\n", testOf(`Less("", "") != ""`), "#\n", nil, "1   0.0 %", "all that compile: less than 50 % are killed"},
		{"a change ends the program without a failure", code, strings.Replace(exact, "t.Fail()", "os.Exit(3)", 1), "#\n", nil, "", "the tests end without a result: exit status 3"},
		{"there is no file of tests", code, "", "#\n", nil, "", ".: there are no tests"},
		{"there is no test", code, "package p\n", "#\n", nil, "", ".: there are no tests"},
		{"the tests do not compile", code, exact + "x", "#\n", nil, "", ".: the tests do not compile"},
		{"the program ends at its start", code, exact + "\nfunc init() { os.Exit(2) }\n", "#\n", nil, "", ".: there are no tests: exit status 2"},
		{"the tests fail without a change", strings.Replace(code, "<", ">", 1), exact, "#\n", nil, "", ".: the tests do not pass without a change: killed"},
		{"the tests need more memory than they get", code, exact, "#\n", func(o *options) { o.memory = 50_000 }, "", "without a change: out of memory"},
		{"a pattern matches no test", code, exact, "#\n", func(o *options) { o.last = "TestLess|TestGone" }, "", `.: no test matches "TestGone"`},
		{"there are no mutants", "package p\n", exact, "#\n", nil, "", "p.go has no mutants"},
		{"its file is built for other machines only", "//go:build ignore\n\n" + code, exact, "#\n", nil, "", ". has no files"},
		{"there are no files", "", "", "#\n", nil, "", ". has no files"},
		{"there is no baseline", code, exact, "", nil, "", "no such file or directory"},
		{"the baseline cannot be read", code, exact, survivor + "\n", nil, "", "has not five columns"},
		{"the sample is empty", code, exact, "#\n", func(o *options) { o.sample = 1 }, "", "the sample is empty"},
		{"a sample is to be written", code, exact, "#\n", func(o *options) { o.update, o.sample = true, 1 }, "", "the baseline needs all mutants and not a sample"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			output, _, err := runIn(t, test.code, test.test, test.baseline, test.change)
			if !strings.Contains(err, test.err) || (test.err == "") != (err == "") {
				t.Errorf("error: got %s, want %q", err, test.err)
			}
			if !strings.Contains(output, test.output) {
				t.Errorf("output: got %s, want %s", output, test.output)
			}
		})
	}
}

// The baseline that is written keeps the reasons and satisfies the next run.
func TestRun_update(t *testing.T) {
	t.Parallel()
	_, page, err := runIn(t, code, loose, listed+gone+"\tsurvived\twhy\n", func(o *options) { o.update = true })
	if err != "" || !strings.Contains(page, listed) || strings.Contains(page, gone) {
		t.Fatalf("%s\n%s", err, page)
	}
	output, _, err := runIn(t, code, loose, page, nil)
	if err != "" || strings.Contains(output, removed) {
		t.Errorf("%s\n%s", err, output)
	}
	_, page, err = runIn(t, code, loose, "", func(o *options) { o.update = true })
	if err != "" || !strings.Contains(page, survivor+"\tsurvived\t\n") {
		t.Errorf("%s\n%s", err, page)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	var all []mutant
	for i := range 100 {
		all = append(all, mutant{file: "a/" + string(rune('a'+i%4)) + ".go", offset: i})
	}
	o := options{sample: 30, seed: "1", changed: "a/b.go b/"}
	first := choose(all, o)
	if len(first) != 30 || !slices.Equal(first, choose(all, o)) {
		t.Errorf("the sample of a seed differs: %v", first)
	}
	for i, m := range first {
		if (m.file == "a/b.go") != (i < 25) {
			t.Errorf("mutant %d is of %s", i, m.file)
		}
	}
	if o.seed = "2"; slices.Equal(first, choose(all, o)) {
		t.Error("another seed has the same sample")
	}
	for i := range all {
		all[i].file = "p.go"
	}
	if len(choose(all, o)) != 30/ofRoot {
		t.Error("mutants of the root do not count as several")
	}
	if o.sample = 0; len(choose(all, o)) != 100 {
		t.Error("a sample of 0 is not all")
	}
}

func TestMutantsOf(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	source := "package p\n\nconst most = 1 << 3\n\nfunc (t *T[K]) F(s string) {\n\tfor i := 0; !t.ok && i >= 1; i++ {\n\t\tt.n |= -i\n\t\tbreak\n\t}\n\ts += \"a\" + s // +\n\ts += \"a\" + s\n}\n"
	if err := os.WriteFile(filepath.Join(root, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := mutantsOf(root, "p.go")
	var got []string
	for _, m := range found {
		got = append(got, m.function+": "+m.code)
		if changed := string(m.apply([]byte(source))); len(changed) != len(source)-len(m.old)+len(m.new) || changed == source {
			t.Errorf("%s: %s", m.code, changed)
		}
	}
	want := []string{
		"declarations: const most = 1 [<< → >>] 3",
		"T[K].F: for i := 0; !t.ok [&& → ||] i >= 1; i++ {", "T[K].F: for i := 0; [! → ]t.ok && i >= 1; i++ {",
		"T[K].F: for i := 0; !t.ok && i [>= → >] 1; i++ {", "T[K].F: for i := 0; !t.ok && i [>= → <] 1; i++ {", "T[K].F: for i := 0; !t.ok && i >= 1; i[++ → --] {",
		"T[K].F: t.n [|= → &=] -i", "T[K].F: t.n [|= → =] -i", "T[K].F: [break → continue]",
		`T[K].F: s [+= → -=] "a" + s // +`, `T[K].F: s [+= → =] "a" + s // +`, `T[K].F: s [+= → -=] "a" + s`, `T[K].F: s [+= → =] "a" + s`,
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
	}
}
