package main

import (
	"debug/buildinfo"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A rehearsal uses the published modules of HEAD as a merchant will: from a module
// proxy, by their next version, without a replace, a go.work or a module cache.
type rehearsal struct {
	repo    *repository
	version string
	out     io.Writer

	usual string   // the proxies of all other modules
	test  string   // the test that a merchant writes
	work  string   // a directory of its own
	env   []string // of a go command
	goCmd string
}

//go:embed testdata/merchant_test.go
var merchantTest string

// run rehearses with each of the toolchains.
func (h rehearsal) run(toolchains []string) error {
	if err := h.repo.checkRequirements(h.version); err != nil {
		return err
	}
	return h.build(toolchains)
}

func (h rehearsal) build(toolchains []string) error {
	work, err := os.MkdirTemp("", "rehearsal")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	proxy := filepath.Join(work, "proxy")
	if err := h.repo.pack(proxy, h.version); err != nil {
		return err
	}
	if h.usual == "" {
		// What this machine has downloaded is as good as the proxy that it came from.
		settings, err := output(exec.CommandContext(h.repo.ctx, "go", "env", "GOMODCACHE", "GOPROXY"))
		if err != nil {
			return err
		}
		cache, usual, _ := strings.Cut(strings.TrimSpace(settings), "\n")
		h.usual = "file://" + filepath.Join(cache, "cache", "download") + "," + usual
	}
	if h.test == "" {
		h.test = merchantTest
	}
	for _, toolchain := range toolchains {
		h.work = filepath.Join(work, toolchain)
		if err := h.use(toolchain, "file://"+proxy+","+h.usual); err != nil {
			return err
		}
		if err := h.everything(); err != nil {
			return fmt.Errorf("%s: %w", toolchain, err)
		}
	}
	return nil
}

// use prepares the environment of one release of Go. A toolchain is a module too: it
// is not to be downloaded into the empty cache.
func (h *rehearsal) use(toolchain, proxies string) error {
	cmd := exec.CommandContext(h.repo.ctx, "go", "env", "-json", "GOROOT", "GOVERSION", "GOCACHE", "GOSUMDB")
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOTOOLCHAIN="+toolchain)
	text, err := output(cmd)
	if err != nil {
		return err
	}
	var of struct{ GOROOT, GOVERSION, GOCACHE, GOSUMDB string }
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		return err
	}
	h.goCmd = filepath.Join(of.GOROOT, "bin", "go")
	h.env = append(os.Environ(),
		"GOTOOLCHAIN=local", "GOROOT=", "GOWORK=off", "GOENV=off", "GOCACHE="+of.GOCACHE, "GOSUMDB="+of.GOSUMDB,
		"GOMODCACHE="+filepath.Join(h.work, "modcache"), "GOBIN="+filepath.Join(h.work, "bin"),
		"GOPROXY="+proxies, "GOPRIVATE=", "GONOPROXY=", "GONOSUMDB="+h.repo.modules[0].path(),
		// Without the paths of files, the build cache serves every rehearsal.
		"GOFLAGS=-mod=mod -modcacherw -trimpath -ldflags=-w")
	fmt.Fprintf(h.out, "%s, modules at %s of HEAD\n", of.GOVERSION, h.version)
	return nil
}

// everything is what merchants do with the modules.
func (h rehearsal) everything() error {
	var all []string
	for i, m := range h.repo.published() {
		commands, importable, err := h.program(fmt.Sprint("only", i), m.path())
		if err != nil {
			return err
		}
		if err := h.install(commands); err != nil {
			return err
		}
		if importable {
			all = append(all, m.path())
		}
	}
	if len(all) > 1 {
		if _, _, err := h.program("all", all...); err != nil {
			return err
		}
	}
	return h.testing()
}

// program builds a program that imports every package of some modules that can be
// imported. It returns the packages that are commands, and whether there are others.
func (h rehearsal) program(name string, modules ...string) (commands []string, importable bool, err error) {
	dir, err := h.newModule(name, modules)
	if err != nil {
		return nil, false, err
	}
	var imports []string
	for _, m := range modules {
		packages, err := h.goRun(dir, "list", "-f", "{{.Name}} {{.ImportPath}}", m+"/...")
		if err != nil {
			return nil, false, err
		}
		for line := range strings.Lines(packages) {
			kind, path, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case kind == "main":
				commands = append(commands, path)
			case !strings.Contains(path+"/", "/internal/"):
				imports = append(imports, path)
			}
		}
	}
	if len(imports) == 0 {
		return commands, false, nil
	}
	slices.Sort(imports)
	imports = slices.Compact(imports) // the pattern of the root has those of the others too
	source := "package main\n\nimport (\n"
	for _, path := range imports {
		source += fmt.Sprintf("\t_ %q\n", path)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source+")\n\nfunc main() {}\n"), 0o644); err != nil {
		return nil, false, err
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"run", "."}} {
		if _, err := h.goRun(dir, args...); err != nil {
			return nil, false, err
		}
	}
	fmt.Fprintf(h.out, "  a program that imports %s of %s\n", count(len(imports), "package"), strings.Join(modules, " and "))
	return commands, true, h.checkVersions(dir)
}

// newModule returns the directory of a new module that requires these.
func (h rehearsal) newModule(name string, modules []string) (string, error) {
	dir := filepath.Join(h.work, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if _, err := h.goRun(dir, "mod", "init", "merchant.example/"+name); err != nil {
		return "", err
	}
	get := []string{"get"}
	for _, m := range modules {
		get = append(get, m+"@"+h.version)
	}
	_, err := h.goRun(dir, get...)
	return dir, err
}

// checkVersions requires that a build has the modules of the rehearsal, and no
// published version of them.
func (h rehearsal) checkVersions(dir string) error {
	list, err := h.goRun(dir, "list", "-m", "-f", "{{.Path}} {{.Version}}", "all")
	if err != nil {
		return err
	}
	for line := range strings.Lines(list) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		if h.repo.own(path) && version != h.version {
			return fmt.Errorf("a build has %s %s", path, version)
		}
	}
	return nil
}

// testing runs a test of a merchant that uses the stand-in.
func (h rehearsal) testing() error {
	dir, err := h.newModule("test", []string{h.repo.modules[0].path()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "merchant_test.go"), []byte(h.test), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"vet", "."}, {"test", "-count=1", "."}} {
		if _, err := h.goRun(dir, args...); err != nil {
			return err
		}
	}
	fmt.Fprintln(h.out, "  a test with the stand-in")
	return nil
}

// install installs the commands of one module by their version, outside of any module:
// there a go.mod that replaces something is refused.
func (h rehearsal) install(commands []string) error {
	if len(commands) == 0 {
		return nil
	}
	args := []string{"install"}
	for _, command := range commands {
		args = append(args, command+"@"+h.version)
	}
	if _, err := h.goRun(h.work, args...); err != nil {
		return err
	}
	for _, command := range commands {
		info, err := buildinfo.ReadFile(filepath.Join(h.work, "bin", filepath.Base(command)))
		if err != nil {
			return err
		}
		if info.Path != command {
			return fmt.Errorf("%s and %s are installed by the same name", info.Path, command)
		}
	}
	fmt.Fprintf(h.out, "  go install of %s\n", count(len(commands), "command"))
	return nil
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprint(n, " ", of, "s")
}

// goRun runs one go command.
func (h rehearsal) goRun(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(h.repo.ctx, h.goCmd, args...)
	cmd.Dir, cmd.Env = dir, append(h.env, "PWD="+dir)
	return output(cmd)
}
