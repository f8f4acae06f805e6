package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
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
}

func (s *session) write(text string) error {
	_, err := io.WriteString(s.out, text)
	return err
}

// tell writes one line to stderr.
func (s *session) tell(format string, args ...any) {
	_, _ = fmt.Fprintln(s.err, printable(fmt.Sprintf(format, args...))) // there is nowhere left to report it
}

// printList prints records as JSON, or as a table with a row for each.
func printList[T any](s *session, list []T, columns []string, row func(T) []string) error {
	if s.format == formatJSON {
		return s.writeJSON(append([]T{}, list...), "  ") // not null
	}
	rows := [][]string{columns}
	for _, one := range list {
		rows = append(rows, row(one))
	}
	return s.write(aligned(rows))
}

// printFields prints a record as JSON, or as a table with a row for each member.
func (s *session) printFields(record any) error {
	if s.format == formatJSON {
		return s.writeJSON(record, "  ")
	}
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	var rows [][]string
	from := json.NewDecoder(bytes.NewReader(text))
	_, _ = from.Token() // nothing fails for what was just written
	for from.More() {
		name, _ := from.Token()
		var value json.RawMessage
		_ = from.Decode(&value)
		cell := string(value)
		_ = json.Unmarshal(value, &cell) // a text loses its quotes
		rows = append(rows, []string{fmt.Sprint(name), cell})
	}
	return s.write(aligned(rows))
}

// printDone prints what a command has changed.
func (s *session) printDone(record any) error {
	if err := s.printFields(record); err != nil {
		return fmt.Errorf("it is done, but stdout failed: %w", err)
	}
	return nil
}

// writeJSON writes a value as JSON; in one line if indent is empty.
func (s *session) writeJSON(value any, indent string) error {
	var text strings.Builder
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	to.SetIndent("", indent)
	if err := to.Encode(value); err != nil {
		return err
	}
	return s.write(escaped(text.String()))
}

// escaped writes the characters of a JSON text that are not printable as escapes. The text means the same, and does not
// control a terminal.
func escaped(text string) string {
	var b strings.Builder
	for _, char := range text {
		switch {
		case char == '\n' || unicode.IsPrint(char):
			b.WriteRune(char)
		case char == '\t' || char == '\r': // between two members
			b.WriteByte(' ')
		default:
			for _, unit := range utf16.AppendRune(nil, char) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}

// aligned returns rows whose columns have one width. The last column may have any.
func aligned(rows [][]string) string {
	var text strings.Builder
	to := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
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
