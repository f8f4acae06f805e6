package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"
)

// A console is where a command writes.
type console struct {
	out, err     io.Writer
	outTerminal  bool // whether out is a terminal
	errTerminal  bool // whether err is a terminal, on which waits show progress
	withoutColor bool // whether NO_COLOR is set, or the terminal has no colors
}

// standard returns the console of the process.
func standard() console {
	return console{
		out: os.Stdout, err: os.Stderr,
		outTerminal: isTerminal(os.Stdout), errTerminal: isTerminal(os.Stderr),
		withoutColor: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
	}
}

// isTerminal reports whether a file is a character device, as terminals are.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Formats of the output.
const (
	formatTable = "table"
	formatJSON  = "json"
)

// A table is a result for people: the names of the columns, and the rows.
type table struct {
	columns []string
	rows    [][]string
}

// printResult prints a result as JSON or as a table. It is the only output of a command
// on stdout.
func (s *session) printResult(value any, t table) error {
	if s.format == formatJSON {
		return writeJSON(s.out, value)
	}
	return s.printTable(t)
}

func writeJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func (s *session) printTable(t table) error {
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.columns}, t.rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(shortened(cell))
		}
		fmt.Fprintln(aligned, strings.Join(cells, "\t"))
	}
	_ = aligned.Flush() // to memory: cannot fail
	head, rows, _ := strings.Cut(text.String(), "\n")
	if s.outTerminal && !s.withoutColor {
		head = "\x1b[1m" + head + "\x1b[0m"
	}
	_, err := io.WriteString(s.out, head+"\n"+rows)
	return err
}

// maxCell is the largest size of a cell in bytes. All cells of a column get the width of
// the widest, so that one without a bound could fill the memory. No amount is as long.
const maxCell = 512

// shortened cuts a text that is too long for a table, and marks the cut. JSON has all of it.
func shortened(cell string) string {
	if len(cell) > maxCell {
		return strings.ToValidUTF8(cell[:maxCell], "") + "…"
	}
	return cell
}

// printable replaces characters that are not printable: text of the service must not
// control the terminal.
func printable(text string) string {
	return strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) {
			return unicode.ReplacementChar
		}
		return char
	}, text)
}

func yesNo(flag bool) string {
	if flag {
		return "yes"
	}
	return "no"
}
