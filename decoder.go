package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/cryptogw/gateway/internal/doc"
)

// A decoder reads a result whose form is not documented: with the function of a caller's option, or in the forms that
// the client knows.
type decoder[T any] struct {
	option string                             // the name of the option
	decode func(json.RawMessage) ([]T, error) // its function; nil for none
	check  func([]T) error                    // returns why what the function returned is refused, or nil
	known  func(doc.Node) ([]T, *doc.Error)   // reads the forms that the client knows
}

// read reads the result of a response, and returns its text too. With a function of the caller, a body without an
// envelope is the result. An array or object without anything in it has every form.
func (d decoder[T]) read(e envelope) (all []T, raw json.RawMessage, wrong *doc.Error) {
	result, wrong := e.undocumented(d.decode != nil)
	if wrong == nil {
		raw = json.RawMessage(result.JSON())
		switch isList := result.Kind() == '[' || result.Kind() == '{'; {
		case isList && result.Len() == 0:
			return []T{}, raw, nil
		case d.decode != nil:
			all, wrong = d.call(result, raw)
			return all, raw, wrong
		}
		all, wrong = d.known(result)
	}
	if wrong != nil {
		return nil, nil, withAdvice(wrong, d.option+" reads another form")
	}
	return all, raw, nil
}

// call calls the function of the caller.
func (d decoder[T]) call(result doc.Node, raw json.RawMessage) ([]T, *doc.Error) {
	all, err := decodeBy(d.decode, raw)
	if err == nil {
		err = d.check(all)
	}
	if err != nil {
		err = fmt.Errorf("the function of %s: %w", d.option, sanitize(err, result.Keys()))
		return nil, &doc.Error{Pointer: result.Pointer(), Err: err}
	}
	return append([]T{}, all...), nil // not nil
}

// decodeBy calls a function of the caller, which may change the text. If it panics, that is its error.
func decodeBy[T any](decode func(json.RawMessage) (T, error), raw json.RawMessage) (result T, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("it panicked: %v", panicked)
		}
	}()
	return decode(bytes.Clone(raw))
}

// withAdvice adds advice to an error.
func withAdvice(wrong *doc.Error, advice string) *doc.Error {
	return &doc.Error{Pointer: wrong.Pointer, Value: wrong.Value, Err: fmt.Errorf("%w; %s", wrong.Err, advice)}
}
