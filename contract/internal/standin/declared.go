// Package standin finds what package gatewaytest declares, so that no shape and no
// fault is missing from a table of tests.
package standin

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Shapes returns every shape that gatewaytest has, whose sources are in dir.
func Shapes(t *testing.T, dir string) []string {
	t.Helper()
	return declared(t, dir, `Shape = "(\w+/\w+)"`)
}

// Faults returns the name of every function of gatewaytest that makes a fault.
func Faults(t *testing.T, dir string) []string {
	t.Helper()
	return declared(t, dir, `(?m)^func ([A-Z]\w*)\(.*\) Fault \{$`)
}

// declared returns what the pattern matches in the sources. It fails the test when
// nothing does.
func declared(t *testing.T, dir, pattern string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1) {
			found = append(found, match[1])
		}
	}
	require.NotEmpty(t, found)
	return found
}
