package rivergateway

import (
	"os"
	"strings"
	"testing"
)

// The blocks of the README are code of the examples.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	check(t, err)
	example, err := os.ReadFile("example_test.go")
	check(t, err)
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Error("there are no blocks")
	}
	for _, block := range blocks {
		if code, _, _ := strings.Cut(block, "```"); !strings.Contains(string(example), code) {
			t.Errorf("not in the examples:\n%s", code)
		}
	}
}
