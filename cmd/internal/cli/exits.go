package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// An Exit is an exit code and what it means.
type Exit struct {
	Code    int
	Meaning string // in a few words, for JSON and tables
	Text    string // for the help
}

// Exits is a topic of the help with all exit codes, between two texts.
func Exits(name, before, after string, all []Exit) *cobra.Command {
	text := before + "\n\n"
	for _, e := range all {
		text += fmt.Sprintf("%4d  %s\n      %s\n", e.Code, e.Meaning, strings.ReplaceAll(e.Text, "\n", "\n      "))
	}
	return &cobra.Command{Use: name, Short: "The exit codes", Long: strings.TrimSpace(text + after)}
}

// Meaning returns the meaning of an exit code.
func Meaning(all []Exit, code int) string {
	for _, e := range all {
		if e.Code == code {
			return e.Meaning
		}
	}
	return ""
}
