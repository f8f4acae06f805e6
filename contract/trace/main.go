// Trace ties every statement of INTERFACE.md, the description of the service, to
// the code that makes it true and to the tests that fail without that code.
//
// Without a flag it fails when docs/traceability.md is not up to date, when a
// statement has no test, or when code or a test that it names is not there. With
// -update it writes the file. With -prove it also makes each statement untrue, one
// small change of the code at a time, and fails unless every test that is named
// notices. The code on disk stays as it is.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	var o options
	flag.StringVar(&o.root, "root", "..", "the `directory` of the client")
	flag.BoolVar(&o.update, "update", false, "write docs/traceability.md")
	flag.BoolVar(&o.prove, "prove", false, "change the code and expect the tests to fail")
	flag.IntVar(&o.section, "section", 0, "with -prove, the `number` of the only section to prove")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many changes are tried at a time")
	flag.Parse()
	if err := run(o, statements(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	root          string
	update, prove bool
	section       int // 0 for all
	workers       int
}

func run(o options, sections []section, log io.Writer) error {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	code, err := newIndex(root)
	if err != nil {
		return err
	}
	if err := code.check(sections); err != nil {
		return err
	}
	if err := page(root, code.table(sections), o.update); err != nil || !o.prove {
		return err
	}
	if o.section < 0 || o.section > len(sections) {
		return fmt.Errorf("there are sections from 1 to %d", len(sections))
	}
	if o.section > 0 {
		sections = sections[o.section-1 : o.section]
	}
	proof, err := newProof(root, code, o.workers, log)
	if err != nil {
		return err
	}
	return proof.run(sections)
}

// page writes the table, or compares it with what is written.
func page(root string, table []byte, update bool) error {
	path := filepath.Join(root, "docs", "traceability.md")
	if update {
		return os.WriteFile(path, table, 0o644)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(written, table) {
		return errors.New("docs/traceability.md is not up to date: bash .ci/trace -update")
	}
	return nil
}
