package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// check fails unless HEAD may be released as this version. All that is missing is in
// the error.
func (r *repository) check(version string) error {
	if err := checkNumber(version); err != nil {
		return err
	}
	return errors.Join(r.checkConst(version), r.checkChangelog(version), r.checkRequirements("v"+version), r.checkAPI("v"+version))
}

func checkNumber(version string) error {
	if !semver.IsValid("v"+version) || semver.Canonical("v"+version) != "v"+version {
		return fmt.Errorf("%q is not a version such as 1.2.3", version)
	}
	return nil
}

func (r *repository) checkConst(version string) error {
	stated, err := r.constVersion()
	if err == nil && stated != version {
		return fmt.Errorf("const Version is %q", stated)
	}
	return err
}

// checkChangelog requires a dated section of the version, and that nothing is left in
// the section above it.
func (r *repository) checkChangelog(version string) error {
	text, err := r.git("show", "HEAD:CHANGELOG.md")
	if err != nil {
		return err
	}
	dated := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(version) + `\] - \d{4}-\d{2}-\d{2}$`)
	if !dated.MatchString(text) {
		return fmt.Errorf("CHANGELOG.md has no section \"## [%s] - YYYY-MM-DD\"", version)
	}
	_, unreleased, _ := strings.Cut(text, "\n## [Unreleased]\n")
	unreleased, _, _ = strings.Cut(unreleased, "\n## [")
	if strings.TrimSpace(unreleased) != "" {
		return errors.New("CHANGELOG.md has lines under Unreleased: move them into the section of the version")
	}
	return nil
}

// checkRequirements requires that every module names those of this repository by
// their next version: a user's build does not see what a go.mod replaces.
func (r *repository) checkRequirements(version string) error {
	var missing []error
	for _, m := range r.modules {
		for _, required := range m.file.Require {
			if r.own(required.Mod.Path) && required.Mod.Version != version {
				missing = append(missing, fmt.Errorf("%s/go.mod requires %s, not %s", m.dir, required.Mod, version))
			}
		}
	}
	if len(missing) > 0 {
		missing = append(missing, fmt.Errorf("that is written by: go -C tools run ./release set %s", version[1:]))
	}
	return errors.Join(missing...)
}

// checkAPI compares the files in api/ with those of the last release.
func (r *repository) checkAPI(version string) error {
	tags, err := r.git("tag", "--list", "v*", "--sort=-version:refname")
	if err != nil {
		return err
	}
	last, _, _ := strings.Cut(tags, "\n")
	if last == "" {
		return nil // the first release may be any
	}
	numbers, err := r.git("diff", "--numstat", last, "HEAD", "--", "api/*.txt")
	if err != nil {
		return err
	}
	added, removed := 0, 0
	for line := range strings.Lines(numbers) {
		var plus, minus int
		if _, err := fmt.Sscan(line, &plus, &minus); err != nil {
			return fmt.Errorf("git diff --numstat: %q: %w", line, err)
		}
		added, removed = added+plus, removed+minus
	}
	return allows(last, version, added, removed)
}

// allows applies CONTRIBUTING.md, "What a version may change", to two versions and
// the lines of the API that were added and removed between them.
func allows(last, next string, added, removed int) error {
	var major, minor, patch int
	if _, err := fmt.Sscanf(semver.Canonical(last), "v%d.%d.%d", &major, &minor, &patch); err != nil {
		return fmt.Errorf("the last tag is %q: %w", last, err)
	}
	number := func(major, minor, patch int) string {
		return "v" + strconv.Itoa(major) + "." + strconv.Itoa(minor) + "." + strconv.Itoa(patch)
	}
	switch next {
	case number(major, minor, patch+1):
		if added+removed > 0 {
			return fmt.Errorf("%s is a patch of %s, and the API has %d lines more and %d less", next, last, added, removed)
		}
	case number(major, minor+1, 0):
		if removed > 0 && major > 0 {
			return fmt.Errorf("%s is a minor version after %s, and %d lines of the API are gone or have changed", next, last, removed)
		}
	case number(major+1, 0, 0):
	default:
		return fmt.Errorf("%s does not follow %s", next, last)
	}
	return nil
}

// printTags prints the commands that release HEAD. One push takes all tags, so that
// no module is there without those that it requires.
func (r *repository) printTags(out io.Writer, version string) error {
	commit, err := r.git("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	commit = strings.TrimSpace(commit)
	push := "git push --atomic origin"
	for _, m := range r.published() {
		tag := m.tag("v" + version)
		fmt.Fprintf(out, "git tag -a %s -m '%s' %s\n", tag, tag, commit)
		push += " " + tag
	}
	_, err = fmt.Fprintln(out, push)
	return err
}
