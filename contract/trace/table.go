package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

const heading = `# Every statement has a test

Written by ` + "`bash .ci/trace -update`" + `; do not edit it. What is known of the service is one page,
INTERFACE.md. Below is every statement of that page, with the code that makes it true: in the client, and in
the stand-in of gatewaytest where that has something to do with it. Where the page says that something is not
shown, the row says what is done instead.

Each row names a small change of that code which makes the statement untrue, and tests that fail then.
` + "`bash .ci/trace`" + ` makes all of these changes, one at a time, and fails when a test does not notice. So all rows
are proved: %d statements, %d changes.

The statements themselves are in [contract/trace](../contract/trace).
`

// table is the whole page.
func (x *index) table(sections []section) []byte {
	count := 0
	for _, s := range sections {
		count += len(s.statements)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, heading, count, len(changes(sections)))
	for i, s := range sections {
		fmt.Fprintf(&out, "\n## %d. %s\n\n| | INTERFACE.md | code | untrue with | tests that fail then |\n|---|---|---|---|---|\n", i+1, s.title)
		for j, statement := range s.statements {
			number, text := fmt.Sprintf("%d.%d", i+1, j+1), words(statement.text)
			if statement.instead != "" {
				text += " **Instead:** " + words(statement.instead)
			}
			for _, c := range statement.claims {
				fmt.Fprintf(&out, "| %s | %s | %s |\n", number, text, x.claimCells(c))
				number, text = "", ""
			}
		}
	}
	return out.Bytes()
}

func (x *index) claimCells(c claim) string {
	change := code(c.old) + " → " + code(c.new)
	if strings.TrimSpace(c.new) == "" {
		change = "without " + code(c.old)
	}
	var tests []string
	for _, test := range c.tests {
		name, _, _ := strings.Cut(test, "/")
		tests = append(tests, link(test, x.tests[c.part][name]))
	}
	return strings.Join([]string{
		link(c.symbol, x.symbols[c.part][c.symbol].file), change, strings.Join(tests, "<br>"),
	}, " | ")
}

func link(text, file string) string { return "[" + code(text) + "](" + path.Join("..", file) + ")" }

// words writes a text that is no code.
func words(text string) string { return strings.ReplaceAll(cell(text), "<", "&lt;") }

// code writes a text as code, on one line.
func code(text string) string { return "`" + cell(strings.Join(strings.Fields(text), " ")) + "`" }

// cell escapes what would end a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
