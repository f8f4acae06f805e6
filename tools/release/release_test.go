package main

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A fixture has a module, one that requires it and replaces it, and one that no user
// imports. No other modules are needed, so that no test uses a network.
func fixture() map[string]string {
	return map[string]string{
		"go.mod":           "module shop.example/client\n\ngo 1.26\n",
		"client.go":        "package client\n\nconst Version = \"0.1.0\"\n",
		"cmd/call/main.go": "package main\n\nfunc main() {}\n",
		"guard/go.mod": "module shop.example/client/guard\n\ngo 1.26\n\n" +
			"replace shop.example/client => ../\n\nrequire shop.example/client v0.1.0\n",
		"guard/guard.go":  "package guard\n\nimport _ \"shop.example/client\"\n",
		"bench/go.mod":    "module shop.example/client/bench\n\ngo 1.26\n",
		"CHANGELOG.md":    "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-22\n\n### Added\n\n- All.\n",
		"api/client.txt":  "package client\nconst Version = ...\n",
		"api/a file.yaml": "is not of the API of Go\n",
	}
}

const fixtureTest = "package merchant\n\nimport (\n\t\"testing\"\n\n\t\"shop.example/client\"\n)\n\n" +
	"func TestVersion(t *testing.T) {\n\tif client.Version != \"0.1.0\" {\n\t\tt.Error(client.Version)\n\t}\n}\n"

// repositoryOf commits the files of the fixture, some of which are changed.
func repositoryOf(t *testing.T, changes map[string]string) *repository {
	t.Helper()
	root := t.TempDir()
	gitIn(t, root, "init", "-q")
	files := fixture()
	maps.Copy(files, changes)
	commit(t, root, files)
	repo, err := open(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func commit(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, root, "add", "-A")
	gitIn(t, root, "commit", "-qm", "a commit")
}

func gitIn(t *testing.T, root string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=n", "-c", "user.email=e@example.org"}, args...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, text)
	}
}

// guardRequires is the fixture's guard/go.mod with another requirement.
func guardRequires(version string) map[string]string {
	return map[string]string{"guard/go.mod": strings.Replace(fixture()["guard/go.mod"], "v0.1.0", version, 1)}
}

// rehearsalOf has a usual proxy without modules.
func rehearsalOf(t *testing.T, repo *repository, out *strings.Builder) rehearsal {
	t.Helper()
	return rehearsal{repo: repo, version: "v0.1.0", out: out, usual: "file://" + t.TempDir(), test: fixtureTest}
}

func TestRehearsal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	repo := repositoryOf(t, map[string]string{ // a command whose go.work counts for nobody else
		"cmd/own/go.mod":  "module shop.example/client/cmd/own\n\ngo 1.26\n\nrequire shop.example/client/guard v0.1.0\n\nrequire shop.example/client v0.1.0 // indirect\n",
		"cmd/own/go.work": "go 1.26\n\nuse .\n\nreplace shop.example/client/guard => ../../absent\n",
		"cmd/own/main.go": "package main\n\nimport _ \"shop.example/client/guard\"\n\nfunc main() {}\n",
	})
	if err := rehearsalOf(t, repo, &out).run([]string{"local"}); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "\n")
	want := `  a program that imports 1 package of shop.example/client
  go install of 1 command
  go install of 1 command
  a program that imports 1 package of shop.example/client/guard
  a program that imports 2 packages of shop.example/client and shop.example/client/guard
  a test with the stand-in
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What merchants could not use does not pass.
func TestRehearsal_red(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		changes map[string]string
		want    string
	}{
		"a requirement of v0.0.0":      {guardRequires("v0.0.0"), "shop.example/client@v0.0.0"},
		"a package that is not packed": {map[string]string{"guard/guard.go": "package guard\n\nimport _ \"shop.example/client/bench\"\n", "bench/b.go": "package bench\n"}, "shop.example/client/bench"},
		"a test that fails":            {map[string]string{"client.go": "package client\n\nconst Version = \"0.0.9\"\n"}, "merchant_test.go"},
		"two commands of one name": {
			map[string]string{"internal/call/main.go": "package main\n\nfunc main() {}\n"},
			"by the same name",
		},
		"a command in a module that replaces": {
			map[string]string{"guard/cmd/g/main.go": "package main\n\nfunc main() {}\n"},
			"must not contain directives",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := rehearsalOf(t, repositoryOf(t, test.changes), &out).build([]string{"local"})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// The go command finds a requirement that is released already. It is refused, and so
// is a build that has it.
func TestRehearsal_oldRequirement(t *testing.T) {
	t.Parallel()
	repo := repositoryOf(t, guardRequires("v0.0.9"))
	var out strings.Builder
	h := rehearsalOf(t, repo, &out)
	err := h.run([]string{"local"})
	if err == nil || !strings.Contains(err.Error(), "guard/go.mod requires shop.example/client@v0.0.9, not v0.1.0") {
		t.Error(err)
	}
	if err := repo.pack(strings.TrimPrefix(h.usual, "file://"), "v0.0.9"); err != nil {
		t.Fatal(err)
	}
	err = h.build([]string{"local"})
	if err == nil || !strings.Contains(err.Error(), "a build has shop.example/client v0.0.9") {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		version string
		changes map[string]string
		want    string
	}{
		"all is there":       {"0.1.0", nil, ""},
		"no version":         {"0.1", nil, `"0.1" is not a version`},
		"another const":      {"0.1.0", map[string]string{"client.go": "package client\n\nconst Version = \"0.2.0\"\n"}, `const Version is "0.2.0"`},
		"no const":           {"0.1.0", map[string]string{"client.go": "package client\n"}, "no const Version"},
		"no section":         {"0.1.0", map[string]string{"CHANGELOG.md": "## [Unreleased]\n"}, "no section"},
		"no date":            {"0.1.0", map[string]string{"CHANGELOG.md": "\n## [Unreleased]\n\n## [0.1.0]\n"}, "no section"},
		"lines left behind":  {"0.1.0", map[string]string{"CHANGELOG.md": "\n## [Unreleased]\n\n- This.\n\n## [0.1.0] - 2026-11-22\n"}, "under Unreleased"},
		"an old requirement": {"0.1.0", guardRequires("v0.0.0"), "guard/go.mod requires"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := repositoryOf(t, test.changes).check(test.version)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestCheck_API(t *testing.T) {
	t.Parallel()
	repo := repositoryOf(t, nil)
	if err := repo.checkAPI("v3.2.1"); err != nil {
		t.Errorf("the first release: %v", err)
	}
	for _, tag := range []string{"v1.1.0", "v1.10.0", "v1.9.0", "guard/v9.9.9"} {
		gitIn(t, repo.root, "tag", tag)
	}
	if err := repo.checkAPI("v1.10.1"); err != nil {
		t.Errorf("a patch without a change: %v", err)
	}
	commit(t, repo.root, map[string]string{"api/client.txt": "package client\nconst Version = ...\nfunc New()\n", "api/a file.yaml": "changed\n"})
	if err := repo.checkAPI("v1.10.1"); err == nil || !strings.Contains(err.Error(), "1 lines more and 0 less") {
		t.Errorf("a patch that adds a function: %v", err)
	}
	if err := repo.checkAPI("v1.11.0"); err != nil {
		t.Errorf("a minor version that adds a function: %v", err)
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		last, next     string
		added, removed int
		allowed        bool
	}{
		{"v0.1.0", "v0.1.1", 0, 0, true},
		{"v0.1.0", "v0.1.1", 1, 0, false},
		{"v0.1.0", "v0.1.1", 0, 1, false},
		{"v0.1.0", "v0.2.0", 1, 1, true},
		{"v0.1.9", "v1.0.0", 1, 1, true},
		{"v1.2.3", "v1.3.0", 1, 0, true},
		{"v1.2.3", "v1.3.0", 0, 1, false},
		{"v1.2.3", "v2.0.0", 1, 1, true},
		{"v1.2.3", "v1.2.3", 0, 0, false},
		{"v1.2.3", "v1.2.5", 0, 0, false},
		{"v1.2.3", "v1.3.1", 0, 0, false},
		{"v1.2.3", "v3.0.0", 0, 0, false},
		{"v1.2.3", "v1.2.2", 0, 0, false},
	} {
		if err := allows(test.last, test.next, test.added, test.removed); (err == nil) != test.allowed {
			t.Errorf("%s to %s, +%d -%d: %v", test.last, test.next, test.added, test.removed, err)
		}
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := repositoryOf(t, nil).printTags(&out, "0.1.0"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"git tag -a v0.1.0 -m 'v0.1.0' ", "git tag -a guard/v0.1.0 -m 'guard/v0.1.0' ", "git push --atomic origin v0.1.0 guard/v0.1.0\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q has no %q", out.String(), line)
		}
	}
	if strings.Contains(out.String(), "bench") {
		t.Errorf("%q has bench", out.String())
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	repo := repositoryOf(t, guardRequires("v0.0.0"))
	if err := repo.set("0.2.0"); err != nil {
		t.Fatal(err)
	}
	commit(t, repo.root, map[string]string{"CHANGELOG.md": "\n## [Unreleased]\n\n## [0.2.0] - 2026-11-22\n"})
	repo, err := open(context.Background(), repo.root)
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.check("0.2.0"); err != nil {
		t.Error(err)
	}
	if err := repo.set("v0.2"); err == nil {
		t.Error("v0.2 is accepted")
	}
}

func TestLicencesOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"MIT License\n\nPermission is hereby granted, free of charge,\nto any person obtaining a copy of this software":       "MIT",
		"Redistribution and use in source and binary forms, with or without modification, are permitted. Neither the name of": "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without modification, are permitted.":                     "BSD-2-Clause",
		"Mozilla Public License, version 2.0":                                      "MPL-2.0",
		"Mozilla Public License Version 2.0\n======\n":                             "MPL-2.0",
		"Apache License\n  Version 2.0, January 2004\n":                            "Apache-2.0",
		"All of the code has been dedicated to the public\ndomain by the authors.": "public domain",
		"All rights reserved. Not for redistribution at all":                       "",
	} {
		if got := strings.Join(licencesOf(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A module whose licence is missing or unknown is an error, not a gap in the table.
func TestLicenceIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got, err := licenceIn(dir); err == nil {
		t.Errorf("no licence: %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE.txt"), []byte("Buy it."), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := licenceIn(dir); err == nil || !strings.Contains(err.Error(), "LICENSE.txt") {
		t.Errorf("an unknown licence: %q, %v", got, err)
	}
}
