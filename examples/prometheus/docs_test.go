package prometheus_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The guide of otelgateway shows code of the example, and alarms with metrics and labels
// that the example prints.
func TestGuide(t *testing.T) {
	guide, example := text(t, "../../otelgateway/README.md"), text(t, "example_test.go")
	_, rest, _ := strings.Cut(guide, "## Prometheus")
	code := block(t, rest, "go")
	if !strings.Contains(example, code) {
		t.Errorf("this is not code of the example:\n%s", code)
	}
	names := regexp.MustCompile(`gateway_\w+|error_type`).FindAllString(block(t, rest, "promql"), -1)
	if len(names) < 5 {
		t.Errorf("there are only %q", names)
	}
	for _, name := range names {
		name = strings.TrimSuffix(name, "_bucket")
		if !strings.Contains(example, name) {
			t.Errorf("the example prints no %s", name)
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// block returns the first block of a language.
func block(t *testing.T, markdown, language string) string {
	t.Helper()
	_, rest, begun := strings.Cut(markdown, "```"+language+"\n")
	content, _, ended := strings.Cut(rest, "```\n")
	if !begun || !ended {
		t.Fatalf("there is no block of %s", language)
	}
	return content
}
