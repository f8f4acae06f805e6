package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFile is the largest size of a file with orders, in bytes.
const maxFile = 16 << 20

// A line is a row of a CSV file: the cells of the columns that were asked for, or "" where there is none.
type line struct {
	number int // the first line of the file has 1
	cells  []string
}

// formulas are the characters that begin a formula in a spreadsheet, or mark one as a text.
const formulas = "=+-@\t\r'"

// cellOf returns a text as a cell that no spreadsheet takes for a formula, and no terminal for control.
func cellOf(text string) string {
	cell := printable(text)
	if cell != "" && strings.Contains(formulas, cell[:1]) {
		return "'" + cell
	}
	return cell
}

// isCellOf reports whether a cell shows a text, with or without the mark of a text, which some spreadsheets remove.
func isCellOf(cell, text string) bool { return cell == text || cell == cellOf(text) }

// textOf returns the text of a cell that cellOf has made.
func textOf(cell string) string {
	if len(cell) > 1 && cell[0] == '\'' && strings.Contains(formulas, cell[1:2]) {
		return cell[1:]
	}
	return cell
}

// A lineError is the error of a line.
type lineError struct {
	number int
	err    error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.number, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// input reads the file of a flag, or stdin for "-".
func (s *session) input(name string) ([]byte, error) {
	from := s.in
	if name != "-" {
		file, err := os.Open(name) // #nosec G304 -- whoever runs the command chooses the file
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return text, err
}

// readLines reads the file of a flag: CSV in UTF-8, with or without a byte-order mark, as spreadsheets save it. The first
// columns must be there. It skips lines without any of them. No error quotes a cell.
func (s *session) readLines(name string, required int, columns ...string) ([]line, error) {
	text, err := s.input(name)
	if err != nil {
		return nil, usage("the file: %w", err)
	}
	lines, err := parseLines(bytes.TrimPrefix(text, []byte("\ufeff")), required, columns)
	if err != nil {
		return nil, usage("the file: %w: save it as CSV in UTF-8, separated by commas", err)
	}
	return lines, nil
}

func parseLines(text []byte, required int, columns []string) (all []line, err error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	from := csv.NewReader(bytes.NewReader(text))
	from.FieldsPerRecord = -1
	var places []int
	for {
		row, err := from.Read()
		switch wrong, ok := errors.AsType[*csv.ParseError](err); {
		case ok:
			return nil, &lineError{wrong.StartLine, wrong.Err}
		case err == io.EOF && places != nil:
			return all, nil
		case places == nil:
			if places, err = placesOf(columns, row, required); err != nil {
				return nil, err
			}
			continue
		}
		number, _ := from.FieldPos(0)
		one := line{number, make([]string, len(columns))}
		for i, place := range places {
			if place >= 0 && place < len(row) {
				one.cells[i] = row[place]
			}
		}
		if strings.TrimSpace(strings.Join(one.cells, "")) != "" {
			all = append(all, one)
		}
	}
}

// placesOf returns the places of columns in a header; -1 for a missing one.
func placesOf(columns, header []string, required int) (places []int, err error) {
	for i, cell := range header {
		header[i] = strings.ToLower(strings.TrimSpace(cell))
		if strings.ContainsFunc(header[i], unicode.IsControl) { // as where carriage returns alone end lines
			return nil, errors.New("its header has control characters")
		}
	}
	for i, column := range columns {
		place := slices.Index(header, column)
		switch {
		case place < 0 && i < required:
			return nil, errors.New("its first line must be a header with " + strings.Join(columns[:required], ", "))
		case place >= 0 && slices.Contains(header[place+1:], column):
			return nil, fmt.Errorf("its header has the column %s twice", column)
		}
		places = append(places, place)
	}
	return places, nil
}
