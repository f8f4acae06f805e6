package gateway_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const skillFile = "skills/cryptogw-gateway/SKILL.md"

var update = flag.Bool("update", false, "write "+skillFile)

// The page for assistants is made of the guides: go test . -run TestSkill -update
func TestSkill(t *testing.T) {
	page, err := template.New("skill.tmpl").Funcs(template.FuncMap{"section": section, "code": codeBlock}).ParseFiles("docs/skill.tmpl")
	require.NoError(t, err)
	var made bytes.Buffer
	require.NoError(t, page.Execute(&made, nil))
	if *update {
		require.NoError(t, os.WriteFile(skillFile, made.Bytes(), 0o644)) // #nosec G306 -- a document
	}
	assert.Equal(t, made.String(), fileText(t, skillFile), "go test . -run TestSkill -update")
}

// A skill has a name, which is that of its directory, and a description, and is short
// enough to be read whole.
func TestSkill_form(t *testing.T) {
	t.Parallel()
	text := fileText(t, skillFile)
	head := regexp.MustCompile(`\A---\nname: ([a-z0-9-]{1,64})\ndescription: (.+)\n---\n`).FindStringSubmatch(text)
	require.NotNil(t, head)
	assert.Equal(t, path.Base(path.Dir(skillFile)), head[1])
	assert.LessOrEqual(t, len(head[2]), 1024)
	assert.LessOrEqual(t, strings.Count(text, "\n"), 300)
	for _, must := range []string{"OutcomeSucceeded", "OutcomeNotSent", "OutcomeRejected", "OutcomeUnknown", "sqlguard.New(", "FaultCommitThenDrop()"} {
		assert.Contains(t, text, must)
	}
	assert.NotContains(t, text, "](", "a link leads nowhere from where a skill is copied to")
	for _, named := range regexp.MustCompile("`((?:docs|cmd)/[^`]+)`").FindAllStringSubmatch(text, -1) {
		assert.FileExists(t, named[1])
	}
}

// section returns the text below a heading of a guide, or its first paragraphs.
func section(guide, heading string, paragraphs ...int) (string, error) {
	text, err := os.ReadFile(guide)
	if err != nil {
		return "", err
	}
	_, below, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		return "", fmt.Errorf("%s has no section %q", guide, heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	if below = strings.Trim(below, "\n"); len(paragraphs) > 0 {
		all := strings.Split(below, "\n\n")
		below = strings.Join(all[:min(paragraphs[0], len(all))], "\n\n")
	}
	return withoutLinks(guide, below), nil
}

// codeBlock returns the n-th block of Go of a guide, from 1.
func codeBlock(guide string, n int) (string, error) {
	text, err := os.ReadFile(guide)
	if err != nil {
		return "", err
	}
	blocks := regexp.MustCompile("(?ms)^```go\n.*?^```$").FindAllString(string(text), -1)
	if n > len(blocks) {
		return "", fmt.Errorf("%s has %d blocks of Go", guide, len(blocks))
	}
	return blocks[n-1], nil
}

var guideLink = regexp.MustCompile(`\[([^\]]+)\]\(([^)#]*)(#[^)]*)?\)`)

// withoutLinks names the page of the module that a link of a guide leads to, and leaves out
// all other links.
func withoutLinks(guide, text string) string {
	return guideLink.ReplaceAllStringFunc(text, func(found string) string {
		parts := guideLink.FindStringSubmatch(found)
		if to := path.Join(path.Dir(guide), parts[2]); parts[2] != "" && (path.Dir(to) == "docs" || path.Dir(to) == "cmd/gateway") {
			return parts[1] + " (`" + to + "`)"
		}
		return parts[1]
	})
}
