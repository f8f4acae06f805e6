package export

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// lines reads the lines of a file.
type lines struct {
	r      *bufio.Reader
	number int // of the last line
	size   int
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, MaxLine+2)} }

// next returns a line without its end, until the next call. At the end of the file the error is [io.EOF].
func (l *lines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	l.number++
	l.size += len(line)
	fault := ""
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		fault = "is longer than 64 KiB: export fewer columns"
	case err == io.EOF:
		fault = "has no line end, so that the file may have been cut: export it again"
	case err != nil:
		return nil, fmt.Errorf("export: line %d: %w", l.number, err)
	case l.size > MaxFile:
		fault = "is behind the first 256 MiB: export a shorter time"
	case l.number == 1 && bytes.HasPrefix(line, []byte("\uFEFF")):
		fault = "begins with a byte-order mark: save the file as UTF-8 without one"
	case !utf8.Valid(line):
		fault = "is not UTF-8: save the file as UTF-8"
	case bytes.IndexByte(line, 0) >= 0:
		fault = "has a NUL character: export the file again"
	}
	if fault != "" {
		return nil, &RowError{Row: l.number, Reason: fault}
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// record returns the fields of a row of CSV, and the line where it begins.
func (l *lines) record() (fields []string, row int, err error) {
	line, err := l.next()
	row = l.number
	size := len(line)
	for err == nil {
		var field []byte
		if quoted, ok := bytes.CutPrefix(line, []byte(`"`)); ok {
			field, line, err = l.quoted(quoted, row, &size)
		} else {
			field, line = line, nil
			if comma := bytes.IndexByte(field, ','); comma >= 0 {
				field, line = field[:comma], field[comma:]
			}
			if bytes.ContainsAny(field, "\"\r") {
				err = &RowError{Row: row, Reason: "has a quote or a line end inside a field without quotes: export the file again as RFC 4180 has it"}
			}
		}
		fields = append(fields, string(field))
		if len(line) == 0 {
			break
		}
		line = line[1:] // after the comma
	}
	return fields, row, err
}

// quoted returns a field whose first quote was read, and what of its last line follows: a comma, or nothing.
func (l *lines) quoted(line []byte, row int, size *int) (field, rest []byte, err error) {
	for {
		end := bytes.IndexByte(line, '"')
		switch {
		case end < 0:
			field = append(append(field, line...), '\n')
			if line, err = l.next(); err == io.EOF {
				err = &RowError{Row: row, Reason: "has a quote that no other one ends: the file may have been cut, export it again"}
			}
			if *size += len(line) + 1; err == nil && *size > MaxLine {
				err = &RowError{Row: row, Reason: "is longer than 64 KiB, or has a quote that no other one ends: export the file again"}
			}
			if err != nil {
				return nil, nil, err
			}
		case bytes.HasPrefix(line[end:], []byte(`""`)):
			field, line = append(field, line[:end+1]...), line[end+2:]
		case end+1 < len(line) && line[end+1] != ',':
			return nil, nil, &RowError{Row: row, Reason: "has text after the quote that ends a field: export the file again as RFC 4180 has it"}
		default:
			return append(field, line[:end]...), line[end+1:], nil
		}
	}
}
