package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxFile is the largest size of a file with orders, in bytes.
const maxFile = 64 << 20

// A line is a row of a CSV file: the cells of the columns that were asked for, or "" where there is none.
type line struct {
	number int // the first line of the file has 1
	cells  []string
}

// A lineError is the error of a line.
type lineError struct {
	number int
	err    error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.number, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// readLines reads the file of a flag, or stdin for "-": CSV in UTF-8, with or without a byte-order mark, as spreadsheets
// save it. The first columns must be there. It skips lines without any of them. No error quotes a cell.
func (s *session) readLines(name string, required int, columns ...string) ([]line, error) {
	text, err := s.input(name)
	if err == nil {
		var lines []line
		if lines, err = parseLines(text, required, columns); err == nil {
			return lines, nil
		}
	}
	return nil, usage("the file: %w", err)
}

func (s *session) input(name string) ([]byte, error) {
	if name == "-" {
		return readBounded(s.in, maxFile)
	}
	return readFile(name, maxFile)
}

const saveAs = "save it as CSV in UTF-8, separated by commas"

func parseLines(text []byte, required int, columns []string) (all []line, err error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("it is UTF-16, or no text: " + saveAs)
	}
	header, _, _ := bytes.Cut(text, []byte("\n"))
	for _, separator := range []string{";", "\t"} {
		if cells := strings.Split(string(header), separator); len(cells) > 1 && placeOf(columns[0], cells) >= 0 {
			return nil, errors.New("its columns are separated by semicolons or tabs: " + saveAs)
		}
	}
	from := csv.NewReader(bytes.NewReader(text))
	from.FieldsPerRecord, from.ReuseRecord = -1, true
	var places []int
	for {
		row, err := from.Read()
		if err == io.EOF && places == nil || err == nil && places == nil && !hasAll(columns[:required], row) {
			names := strings.ReplaceAll(strings.Join(columns[:required], " and "), "|", " or ")
			return nil, fmt.Errorf("its first line must be a header with %s: %s", names, saveAs)
		}
		if err == io.EOF {
			return all, nil
		}
		if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, &lineError{wrong.StartLine, fmt.Errorf("%w: %s", wrong.Err, saveAs)}
		}
		if err != nil {
			return nil, err
		}
		number, _ := from.FieldPos(0)
		if places == nil {
			if places, err = placesOf(columns, row); err != nil {
				return nil, err
			}
			continue
		}
		one := line{number, make([]string, len(columns))}
		for i, place := range places {
			if place >= 0 && place < len(row) {
				one.cells[i] = row[place]
			}
		}
		if slices.ContainsFunc(one.cells, func(cell string) bool { return !utf8.ValidString(cell) }) {
			return nil, &lineError{number, errors.New("it is not UTF-8: " + saveAs)}
		}
		if strings.TrimSpace(strings.Join(one.cells, "")) != "" {
			all = append(all, one)
		}
	}
}

// placeOf returns the place of a column in a header; -1 for none.
func placeOf(column string, header []string) int {
	return slices.IndexFunc(header, func(cell string) bool { return isColumn(cell, column) })
}

// isColumn reports whether a cell of a header names a column. The column "a|b" has two names.
func isColumn(cell, column string) bool {
	cell = strings.ToLower(strings.Trim(strings.TrimSpace(cell), `"`))
	return slices.Contains(strings.Split(column, "|"), cell)
}

func hasAll(columns, header []string) bool {
	return !slices.ContainsFunc(columns, func(column string) bool { return placeOf(column, header) < 0 })
}

// placesOf returns the places of columns in a header; -1 for a missing one.
func placesOf(columns, header []string) (places []int, err error) {
	for _, column := range columns {
		place := placeOf(column, header)
		if place >= 0 && placeOf(column, header[place+1:]) >= 0 {
			err = fmt.Errorf("its header has the column %s twice", column)
		}
		places = append(places, place)
	}
	return places, err
}
