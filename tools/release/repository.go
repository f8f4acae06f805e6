package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// A repository is what HEAD has: the modules of which users import some.
type repository struct {
	ctx     context.Context
	root    string
	modules []repoModule // that of the root first
}

type repoModule struct {
	dir  string // with slashes; "." for the root
	file *modfile.File
}

func (m repoModule) path() string { return m.file.Module.Mod.Path }

// tag is the name of the tag of a version such as v1.2.3.
func (m repoModule) tag(version string) string { return path.Join(m.dir, version) }

func open(ctx context.Context, root string) (*repository, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r := &repository{ctx: ctx, root: root}
	names, err := r.git("ls-tree", "-r", "--name-only", "HEAD")
	if err != nil {
		return nil, err
	}
	for name := range strings.Lines(names) {
		name = strings.TrimSuffix(name, "\n")
		if path.Base(name) != "go.mod" {
			continue
		}
		text, err := r.git("show", "HEAD:"+name)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(name, []byte(text), nil)
		if err != nil {
			return nil, err
		}
		r.modules = append(r.modules, repoModule{dir: path.Dir(name), file: file})
	}
	slices.SortFunc(r.modules, func(a, b repoModule) int { return strings.Compare(a.dir, b.dir) })
	if len(r.modules) == 0 || r.modules[0].dir != "." {
		return nil, fmt.Errorf("HEAD of %s has no go.mod", root)
	}
	return r, nil
}

// published are the modules that users import.
func (r *repository) published() []repoModule {
	return slices.DeleteFunc(slices.Clone(r.modules), func(m repoModule) bool { return unpublished(m.dir) })
}

// printModules prints the directories of the published modules.
func (r *repository) printModules(out io.Writer) error {
	for _, m := range r.published() {
		if _, err := fmt.Fprintln(out, m.dir); err != nil {
			return err
		}
	}
	return nil
}

func (r *repository) git(args ...string) (string, error) {
	return output(exec.CommandContext(r.ctx, "git", append([]string{"-C", r.root}, args...)...))
}

// output runs a command. Its error has what the command printed to its standard error.
func output(cmd *exec.Cmd) (string, error) {
	var stderr strings.Builder
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, text, stderr.String())
	}
	return string(text), nil
}

// const Version stands in a file of the root.
var constVersion = regexp.MustCompile(`(?m)^(const Version = )"(.*)"$`)

func (r *repository) constVersion() (string, error) {
	text, err := r.git("grep", "-h", "^const Version = ", "HEAD", "--", ":(glob)*.go")
	if err != nil {
		return "", fmt.Errorf("the root has no const Version: %w", err)
	}
	found := constVersion.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		return "", fmt.Errorf("the root has not one const Version, but: %s", text)
	}
	return found[0][2], nil
}

// own reports whether a module is one of this repository.
func (r *repository) own(path string) bool {
	return slices.ContainsFunc(r.modules, func(m repoModule) bool { return m.path() == path })
}

// set writes a version into the files that state it.
func (r *repository) set(version string) error {
	if err := checkNumber(version); err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(r.root, "*.go"))
	if err != nil {
		return err
	}
	for _, source := range sources {
		if err := rewrite(source, func(text []byte) ([]byte, error) {
			return constVersion.ReplaceAll(text, []byte(`$1"`+version+`"`)), nil
		}); err != nil {
			return err
		}
	}
	for _, m := range r.modules {
		if err := rewrite(filepath.Join(r.root, m.dir, "go.mod"), func(text []byte) ([]byte, error) {
			return r.setRequirements(text, "v"+version)
		}); err != nil {
			return err
		}
	}
	return nil
}

// setRequirements changes, in the text of a go.mod, the versions of the modules of
// this repository.
func (r *repository) setRequirements(text []byte, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	var ours []module.Version
	for _, required := range file.Require {
		if r.own(required.Mod.Path) {
			ours = append(ours, required.Mod)
		}
	}
	for _, required := range ours {
		if err := file.AddRequire(required.Path, version); err != nil {
			return nil, err
		}
	}
	return file.Format()
}

// rewrite changes a file if its text changes.
func rewrite(name string, change func([]byte) ([]byte, error)) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	changed, err := change(text)
	if err != nil || string(changed) == string(text) {
		return err
	}
	return os.WriteFile(name, changed, 0o644)
}
