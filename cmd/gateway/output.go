package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
)

// Formats of the output.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
)

// prints defines -o, --output with the formats of a command. The first, a table, is the default.
func (s *session) prints(c *cobra.Command, formats ...string) {
	choice := strings.Join(formats, ", ")
	c.Flags().FuncP("output", "o", fmt.Sprintf("the `format` of the output, one of %s (default %s)", choice, formats[0]), func(text string) error {
		if !slices.Contains(formats, text) {
			return fmt.Errorf("it is one of %s", choice)
		}
		s.format = text
		return nil
	})
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that does not exist
}

// write writes a text to stdout.
func (s *session) write(text string) error {
	_, err := io.WriteString(s.out, text)
	return err
}

// tell writes one line to stderr.
func (s *session) tell(format string, args ...any) {
	_, _ = fmt.Fprintln(s.err, printable(fmt.Sprintf(format, args...))) // there is nowhere left to report it
}

// print prints a result as JSON, or as a table.
func (s *session) print(value any, columns []string, rows [][]string) error {
	if s.format == formatJSON {
		return writeJSON(s.out, value, "  ")
	}
	return s.write(aligned(append([][]string{columns}, rows...)))
}

// printFields prints a record as JSON, or as a table with a row for each member.
func (s *session) printFields(record any) error {
	text, err := json.Marshal(record)
	if err != nil || s.format == formatJSON {
		return errors.Join(err, s.print(record, nil, nil))
	}
	var rows [][]string
	from := json.NewDecoder(bytes.NewReader(text))
	for _, err = from.Token(); err == nil && from.More(); {
		var name, value any
		var raw json.RawMessage
		if name, err = from.Token(); err == nil {
			err = from.Decode(&raw)
		}
		if err == nil {
			err = json.Unmarshal(raw, &value)
		}
		if text, isText := value.(string); isText {
			rows = append(rows, []string{fmt.Sprint(name), text})
		} else {
			rows = append(rows, []string{fmt.Sprint(name), string(raw)})
		}
	}
	return errors.Join(err, s.write(aligned(rows)))
}

// printDone prints what a command has changed. If stdout takes nothing, stderr gets it: the change is made all the same.
func (s *session) printDone(record any) error {
	signal.Ignore(syscall.SIGPIPE) // so that stderr gets what stdout does not take
	err := s.printFields(record)
	if err == nil {
		return nil
	}
	s.tell("It is done, but stdout failed: %v", err)
	onErr := *s
	onErr.out = s.err
	_ = onErr.printFields(record) // there is nowhere left to report it
	return nil
}

// writeJSON writes a value as JSON without characters that control a terminal; in one line if indent is empty.
func writeJSON(to io.Writer, value any, indent string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(to, escaped(text.String()))
	return err
}

// escaped writes the characters of JSON that control a terminal or the direction of text, all of Cc and Cf except the
// end of a line and the tab, as a string of JSON escapes them.
func escaped(text string) string {
	var b strings.Builder
	for _, char := range text {
		if char == '\n' || char == '\t' || !unicode.In(char, unicode.Cc, unicode.Cf) {
			b.WriteRune(char)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, char) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// maxCell is the largest number of characters of a cell that widens its column. No amount is as long.
const maxCell = 512

// aligned returns rows whose columns have one width. The last column may have any.
func aligned(rows [][]string) string {
	var text strings.Builder
	to := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if i < len(row)-1 {
				cell = shortened(cell, maxCell)
			}
			cells[i] = printable(cell)
		}
		_, _ = fmt.Fprintln(to, strings.Join(cells, "\t")) // writes to memory
	}
	_ = to.Flush()
	return text.String()
}

// printable replaces the characters that are not printable: text of the service must not control the terminal. The
// ends of lines become spaces.
func printable(text string) string {
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

// shortened cuts a text after most characters, and marks the cut.
func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
