package export

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A header says where the columns are.
type header struct {
	Settings
	names  []string // one for each column, no two the same
	quoted [][]byte // the names as JSON
	places map[string]int
}

// readCSV reads CSV as RFC 4180 has it, but for the separator.
func (c *collector) readCSV(text []byte) error {
	separators, skipped := []rune(c.Separator), 0
	if rest, ok := bytes.CutPrefix(text, []byte("sep=")); ok { // for a spreadsheet
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if named := []rune(strings.TrimSuffix(string(line), "\r")); len(named) == 1 {
			separators, text, skipped = named, after, 1
		}
	}
	if len(separators) == 0 {
		separators = []rune(",;\t|")
	}
	h, reader, err := c.headerOf(text, separators)
	if err != nil {
		return err
	}
	isCut := !bytes.HasSuffix(text, []byte("\n"))
	for {
		texts, err := reader.Read()
		wrong, isWrong := errors.AsType[*csv.ParseError](err)
		switch {
		case err == io.EOF:
			return c.endCSV(h, isCut)
		case isWrong && wrong.Line > wrong.StartLine:
			err = c.addFault(skipped+wrong.StartLine, fmt.Sprintf("a quote in it has no end until line %d", skipped+wrong.Line))
		case isWrong:
			err = c.addFault(skipped+wrong.StartLine, "it is not CSV: "+wrong.Err.Error())
		case err != nil:
			return fmt.Errorf("export: %w", err)
		default:
			line, _ := reader.FieldPos(0)
			err = c.addRecord(h, skipped+line, texts, string(reader.Comma))
		}
		if err != nil {
			return err
		}
	}
}

// endCSV gives the last record a Fault if the file ends in a column that is read, without the end of the line.
func (c *collector) endCSV(h *header, isCut bool) error {
	if last := len(c.file.Rows) - 1; isCut && last >= 0 && h.isRead(h.names[len(h.names)-1]) && c.file.Rows[last].Fault == "" {
		c.file.Rows[last].Fault = "it is the last one, and its line has no end, so that it may have been cut"
	}
	return nil
}

func (c *collector) addRecord(h *header, line int, texts []string, separator string) error {
	swallows := func(text string) bool { // a whole record
		return strings.Contains(text, "\n") && strings.Count(text, separator) >= len(h.names)-1
	}
	switch {
	case strings.TrimSpace(strings.Join(texts, "")) == "":
		return nil // a line without a record
	case len(texts) != len(h.names):
		return c.addFault(line, fmt.Sprintf("it has %d columns, and the header has %d", len(texts), len(h.names)))
	case len(h.names) > 1 && slices.ContainsFunc(texts, swallows):
		return c.addFault(line, "a cell of it has other lines, as if a quote had no end")
	}
	return c.add(line, func(column string) cell { return cell{text: texts[h.places[column]]} }, h.object(texts))
}

// mostBeforeHeader is how many records may come before the header, such as a title and the name of the merchant.
const mostBeforeHeader = 20

// headerOf reads the header: the first record, or one after a title, that has the columns of the settings.
func (c *collector) headerOf(text []byte, separators []rune) (h *header, reader *csv.Reader, err error) {
	for i := len(separators) - 1; i >= 0; i-- {
		reader = csv.NewReader(bytes.NewReader(text))
		reader.Comma, reader.FieldsPerRecord = separators[i], -1
		for n := range mostBeforeHeader + 1 {
			names, failure := reader.Read()
			if failure == nil {
				h, failure = newHeader(c.Settings, names)
			}
			switch {
			case failure == nil:
				return h, reader, nil
			case n == 0:
				err = failure
			}
		}
	}
	return nil, nil, fmt.Errorf("export: the header of the file: %w", err)
}

func newHeader(s Settings, names []string) (*header, error) {
	h := &header{Settings: s, places: map[string]int{}}
	for _, name := range names {
		name = strings.TrimSpace(strings.ToValidUTF8(name, "\uFFFD"))
		for slices.Contains(h.names, name) {
			name += " (again)"
		}
		quoted, _ := jsontext.AppendQuote(nil, name)
		h.names, h.quoted = append(h.names, name), append(h.quoted, quoted)
	}
	for _, column := range s.columns() {
		what, want := column[0], column[1]
		place := slices.Index(h.names, want)
		for i, name := range h.names {
			if place < 0 && strings.EqualFold(name, want) {
				place = i
			}
		}
		switch {
		case place < 0:
			return nil, fmt.Errorf("it has not the column of %s: name it in the settings; it has %.300q", what, h.names)
		case slices.Contains(h.names, h.names[place]+" (again)"):
			return nil, fmt.Errorf("it has the column of %s twice; it has %.300q", what, h.names)
		}
		h.places[want] = place
	}
	return h, nil
}

// isRead reports whether the settings read a column.
func (h *header) isRead(name string) bool {
	return slices.ContainsFunc(h.columns(), func(column [2]string) bool { return h.names[h.places[column[1]]] == name })
}

// object is a record as JSON.
func (h *header) object(texts []string) []byte {
	o := []byte("{")
	for i, name := range h.quoted {
		if i > 0 {
			o = append(o, ',')
		}
		o = append(append(o, name...), ':')
		text := texts[i]
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
		}
		o, _ = jsontext.AppendQuote(o, text) // is valid UTF-8
	}
	return append(o, '}')
}
