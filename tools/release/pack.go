package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// pack writes the published modules of HEAD into a directory that is a module proxy,
// as the go command would pack them from their tags.
func (r *repository) pack(dir, version string) error {
	for _, m := range r.published() {
		escaped, err := module.EscapePath(m.path())
		if err != nil {
			return err
		}
		if err := r.packModule(filepath.Join(dir, filepath.FromSlash(escaped), "@v"), m, version); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
	}
	return nil
}

func (r *repository) packModule(dir string, m repoModule, version string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	mod, err := r.git("show", "HEAD:"+filepath.ToSlash(filepath.Join(m.dir, "go.mod")))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"list": version + "\n", version + ".info": string(info), version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	defer file.Close()
	subdir := m.dir
	if subdir == "." {
		subdir = ""
	}
	if err := zip.CreateFromVCS(file, module.Version{Path: m.path(), Version: version}, r.root, "HEAD", subdir); err != nil {
		return err
	}
	return file.Close()
}
