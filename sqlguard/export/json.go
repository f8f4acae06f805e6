package export

import (
	"bytes"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// readLines reads a file with a JSON object in each line.
func (c *collector) readLines(text []byte) error {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := c.addObject(number, jsontext.Value(line)); err != nil {
			return err
		}
	}
	return nil
}

// readArray reads a file that is an array of JSON objects. What follows a place where it is not JSON is lost.
func (c *collector) readArray(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := d.ReadToken()
	number := 1
	for ; err == nil && d.PeekKind() != ']'; number++ {
		var value jsontext.Value
		if value, err = d.ReadValue(); err != nil {
			break
		}
		if err := c.addObject(number, value); err != nil {
			return err
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	if _, end := d.ReadToken(); err == nil && end == io.EOF {
		return nil
	}
	return c.addFault(number, "what follows is not an array of JSON objects")
}

// addObject adds a record.
func (c *collector) addObject(number int, object jsontext.Value) error {
	values := map[string]cell{}
	d := jsontext.NewDecoder(bytes.NewReader(object))
	token, err := d.ReadToken()
	if err == nil && token.Kind() != '{' {
		err = fmt.Errorf("it is no object")
	}
	for err == nil && d.PeekKind() != '}' {
		var name jsontext.Token
		var value jsontext.Value
		if name, err = d.ReadToken(); err != nil {
			break
		}
		column := name.String()
		if value, err = d.ReadValue(); err == nil {
			values[column] = cellOf(value)
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	if _, end := d.ReadToken(); err != nil || end != io.EOF {
		return c.addFault(number, "it is not one JSON object without a member that is there twice")
	}
	compact := object.Clone()
	_ = compact.Compact() // is valid
	return c.add(number, func(column string) cell { return values[column] }, compact)
}

func cellOf(value jsontext.Value) cell {
	switch value.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, value)
		return cell{text: string(text)}
	case 'n':
		return cell{}
	default:
		return cell{text: string(value), bare: true}
	}
}
