// Package clitest has the command lines in which something stands where it does not belong.
package clitest

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Misplaced returns command lines of a tree with a text in every position, for every flag and as a flag. A
// command line begins with the path of a command and what right has of it, the arguments that it needs.
func Misplaced(root *cobra.Command, text string, right map[string][]string) [][]string {
	lines := [][]string{{text}, {"help", text}, {"-" + text}, {"--" + text}, {"--" + text + "=1"}, {"completion", text}, {"completion", "bash", text}}
	for _, c := range below(root) {
		path := strings.Fields(c.CommandPath())[1:]
		line := append(slices.Clone(path), right[strings.Join(path, " ")]...)
		for at := range len(line) + 1 {
			lines = append(lines, slices.Insert(slices.Clone(line), at, text))
			if at < len(line) {
				lines = append(lines, slices.Replace(slices.Clone(line), at, at+1, text))
			}
		}
		with := func(more ...string) { lines = append(lines, append(slices.Clone(line), more...)) }
		for _, hyphens := range []string{"-", "--", "---"} {
			with(hyphens + text)
			with(hyphens + text + "=1")
			with(hyphens+text, "1")
		}
		with("--", text)
		with("-o", text)
		with("-h=" + text)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			with("--"+f.Name, text)
			with("--" + f.Name + "=" + text)
			with("-"+f.Name, text)
			with("-" + f.Name + "=" + text)
			with("--"+f.Name+"x", text)
			with("--" + f.Name + text)
			if f.Shorthand != "" {
				with("-" + f.Shorthand + text)
				with("-" + f.Shorthand + "=" + text)
			}
			lines = append(lines, append([]string{"--" + f.Name, text}, line...))
		})
	}
	for _, line := range slices.Clone(lines) {
		lines = append(lines, append([]string{"-o", "json"}, line...), append(slices.Clone(line), "-o", "json"))
	}
	return lines
}

// below returns all commands below one.
func below(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		all = append(append(all, sub), below(sub)...)
	}
	return all
}
