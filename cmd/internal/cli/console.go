package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Console is where a command reads and writes.
type Console struct {
	In           io.Reader
	Out, Err     io.Writer
	OutTerminal  bool // whether Out is a terminal
	ErrTerminal  bool // whether Err is a terminal, on which waits show progress
	WithoutColor bool // whether NO_COLOR is set, or the terminal has no colors
}

// Standard returns the console of the process.
func Standard() Console {
	return Console{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutTerminal: isTerminal(os.Stdout), ErrTerminal: isTerminal(os.Stderr),
		WithoutColor: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
	}
}

// isTerminal reports whether a file is a character device, as terminals are.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Formats of the output.
const (
	FormatTable = "table"
	FormatJSON  = "json"
	FormatCSV   = "csv"
)

// OutputFlag defines -o, --output with the formats that a command has; usage ends with what the default is.
func OutputFlag(c *cobra.Command, format *string, byDefault string, formats ...string) {
	choice := strings.Join(formats, " or ")
	c.Flags().FuncP("output", "o", fmt.Sprintf("the `format` of the output: %s (default %s)", choice, byDefault), func(text string) error {
		if !slices.Contains(formats, text) {
			return errors.New("it is " + choice + " here")
		}
		*format = text
		return nil
	})
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}

// AskedFormat returns the format that the arguments ask for, also where something else is wrong in
// them, or that of the environment variable env.
func AskedFormat(args []string, env string) string {
	format := os.Getenv(env)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.BoolP("help", "h", false, "")
	flags.FuncP("output", "o", "", func(text string) error {
		if text == FormatJSON || text == FormatTable { // and not what follows -o in -order
			format = text
		}
		return nil
	})
	_ = flags.Parse(args)
	return format
}

// Write writes a text to stdout.
func (c Console) Write(text string) error {
	_, err := io.WriteString(c.Out, text)
	return err
}

// WriteJSON writes a value as JSON of several lines to stdout.
func (c Console) WriteJSON(value any) error { return EncodeJSON(c.Out, value, "  ") }

// WriteError writes the text of an error to stderr, and then what to do about it.
func (c Console) WriteError(text string, advice ...string) {
	for _, more := range append([]string{strings.TrimSpace(text)}, advice...) {
		for line := range strings.SplitSeq(more, "\n") {
			_, _ = fmt.Fprintln(c.Err, Printable(strings.ReplaceAll(line, "\t", "    "))) // there is nowhere left to report it
		}
	}
}

// EncodeJSON writes a value as JSON that has no character which controls a terminal, in one line if
// indent is empty.
func EncodeJSON(to io.Writer, value any, indent string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(to, Escaped(text.String()))
	return err
}

// Escaped writes the characters that control a terminal or the direction of text, all of Cc and Cf
// but the end of a line and the tab, as a backslash, u and four digits, as in a string of JSON.
func Escaped(text string) string {
	var b strings.Builder
	for _, char := range text {
		if char == '\n' || char == '\t' || !unicode.In(char, unicode.Cc, unicode.Cf) {
			b.WriteRune(char)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, char) {
			_, _ = fmt.Fprintf(&b, `\u%04x`, unit) // to memory: cannot fail
		}
	}
	return b.String()
}

// WriteTable writes aligned rows under the names of their columns to stdout.
func (c Console) WriteTable(columns []string, rows [][]string) error {
	head, rest, _ := strings.Cut(aligned(append([][]string{columns}, rows...)), "\n")
	if c.OutTerminal && !c.WithoutColor {
		head = "\x1b[1m" + head + "\x1b[0m"
	}
	return c.Write(head + "\n" + rest)
}

// WriteRows writes aligned rows to stdout.
func (c Console) WriteRows(rows [][]string) error { return c.Write(aligned(rows)) }

// maxCell is the largest number of characters of a cell which widens its column. No amount is as long.
const maxCell = 512

// aligned returns rows with columns of one width. The last column may be of any.
func aligned(rows [][]string) string {
	var text strings.Builder
	to := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if i < len(row)-1 {
				cell = Shortened(cell, maxCell)
			}
			cells[i] = Printable(cell)
		}
		_, _ = fmt.Fprintln(to, strings.Join(cells, "\t")) // to memory: cannot fail
	}
	_ = to.Flush()
	return text.String()
}

// Printable replaces characters that are not printable: text of the service must not control the
// terminal. The ends of lines become spaces.
func Printable(text string) string {
	return strings.Map(func(char rune) rune {
		switch {
		case unicode.IsPrint(char):
			return char
		case unicode.IsSpace(char):
			return ' '
		default:
			return unicode.ReplacementChar
		}
	}, text)
}

// Shortened cuts a text after some characters, and marks the cut.
func Shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
