package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const thirdPartyFile = "THIRD_PARTY.md"

const thirdPartyPreface = `# Third-party modules

What is linked into a program that uses the published modules of this repository, on Linux, macOS and Windows, with the
licences as their files in each module have them. What only tests, tools and examples in modules of their own need is
left out. ` + "`bash .ci/third-party -update`" + ` writes this file, and ` + "`bash .ci/third-party`" + ` compares it.

| Module | Licence | Linked into |
|---|---|---|
`

// thirdParty compares THIRD_PARTY.md with the modules that the build of the published
// ones has, or writes it.
func thirdParty(ctx context.Context, repo *repository, update bool) error {
	linked := map[string][]string{} // module, licences -> published modules
	for _, m := range repo.published() {
		found, err := linkedModules(ctx, repo, m)
		if err != nil {
			return err
		}
		for _, key := range found {
			name, dir, _ := strings.Cut(key, " ")
			licence, err := licenceIn(dir)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			linked[name+" "+licence] = append(linked[name+" "+licence], path.Base(m.path()))
		}
	}
	var page strings.Builder
	page.WriteString(thirdPartyPreface)
	for _, key := range slices.Sorted(maps.Keys(linked)) {
		name, licence, _ := strings.Cut(key, " ")
		fmt.Fprintf(&page, "| [%s](https://pkg.go.dev/%s?tab=licenses) | %s | `%s` |\n", name, name, licence, strings.Join(linked[key], "`, `"))
	}
	name := filepath.Join(repo.root, thirdPartyFile)
	if update {
		return os.WriteFile(name, []byte(page.String()), 0o644)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != page.String() {
		return errors.Join(err, errors.New(thirdPartyFile+" is not what is linked: bash .ci/third-party -update"))
	}
	return nil
}

// linkedModules are the modules of others, with their directories, of which a program
// has packages that imports a published module, or is a command of it.
func linkedModules(ctx context.Context, repo *repository, m repoModule) ([]string, error) {
	dir := filepath.Join(repo.root, m.dir)
	work := filepath.Join(dir, "go.work") // of a command that go install takes, which replaces nothing
	if _, err := os.Stat(work); err != nil {
		work = "off"
	}
	goList := func(goos string, args ...string) ([]string, error) {
		cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK="+work, "GOOS="+goos, "CGO_ENABLED=0")
		text, err := output(cmd)
		return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), err
	}
	found := map[string]bool{}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		packages, err := goList(goos, "./...")
		if err != nil {
			return nil, err
		}
		packages = slices.DeleteFunc(packages, func(path string) bool { return strings.Contains(path+"/", "/internal/") })
		deps, err := goList(goos, append([]string{"-deps", "-f", "{{with .Module}}{{.Path}} {{.Dir}}{{end}}"}, packages...)...)
		if err != nil {
			return nil, err
		}
		for _, key := range deps {
			if path, _, _ := strings.Cut(key, " "); !repo.own(path) {
				found[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// licenceIn names the licences of the files of a directory that are called so, but for that of a logo. One
// that is not recognized is an error: a person must read it.
func licenceIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	licences := map[string]bool{}
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if entry.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") || strings.HasSuffix(name, "-LOGO") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		found := licencesOf(string(text))
		if len(found) == 0 {
			return "", fmt.Errorf("%s is not the text of a known licence: read it, and add it to licencesOf", entry.Name())
		}
		for _, licence := range found {
			licences[licence] = true
		}
	}
	if len(licences) == 0 {
		return "", errors.New("there is no licence")
	}
	return strings.Join(slices.Sorted(maps.Keys(licences)), ", "), nil
}

// licencesOf names the licences whose sentences a text has, by their SPDX identifiers if they have one.
func licencesOf(text string) []string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	var found []string
	for _, licence := range [...]struct{ id, sentence string }{
		{"Apache-2.0", "apache license version 2.0, january 2004"},
		{"BSD", "redistribution and use in source and binary forms, with or without modification, are permitted"},
		{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
		{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
		{"MPL-2.0", "mozilla public license, version 2.0"},
		{"MPL-2.0", "mozilla public license version 2.0 ="}, // the title, underlined
		{"public domain", "has been dedicated to the public domain by the authors"},
	} {
		if strings.Contains(text, licence.sentence) {
			found = append(found, licence.id)
		}
	}
	if i := slices.Index(found, "BSD"); i >= 0 {
		found[i] = "BSD-2-Clause"
		if strings.Contains(text, "neither the name") {
			found[i] = "BSD-3-Clause"
		}
	}
	return found
}
