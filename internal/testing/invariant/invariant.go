// Package invariant states the rules that every call keeps, however it ends. The tests of the
// client and of proof check them after each call.
package invariant

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/cryptogw/gateway"
)

// Key is the API key of the clients of the tests. No text may contain it.
const Key = "CANARY-5f1d8e0b7a64c932"

// kept is the most that an error keeps of a response.
const kept = 8 << 10

// Broken returns the rules that a call with this result and error has broken.
func Broken(result any, err error) (broken []string) {
	zero := result == nil || reflect.ValueOf(result).IsZero()
	if ShowsKey(result) {
		broken = append(broken, fmt.Sprintf("the key is in the result: %T", result))
	}
	if err == nil {
		if zero {
			broken = append(broken, "a success has no result")
		}
		return broken
	}
	if !zero {
		broken = append(broken, fmt.Sprintf("an error comes with a result: %v", result))
	}
	if text := err.Error(); !strings.HasPrefix(text, "gateway: ") || strings.Contains(text, "\n") {
		broken = append(broken, fmt.Sprintf("an error is not one line that begins with the package: %q", text))
	}
	for inner := err; inner != nil; inner = next(inner) {
		if ShowsKey(inner) {
			broken = append(broken, fmt.Sprintf("the key is in an error: %T", inner))
		}
		if n := len(bodyOf(inner)); n > kept {
			broken = append(broken, fmt.Sprintf("an error keeps %d bytes of a response: %T", n, inner))
		}
	}
	if !isDocumented(err) {
		broken = append(broken, fmt.Sprintf("an error of another type than those documented: %T: %v", err, err))
	}
	return broken
}

// next is the error in an error; the cause of an unknown outcome is not in its tree.
func next(err error) error {
	if unknown, ok := err.(*gateway.OutcomeUnknownError); ok { //nolint:errorlint // the tree is walked
		return unknown.Cause
	}
	return errors.Unwrap(err)
}

func bodyOf(err error) []byte {
	switch err := err.(type) { //nolint:errorlint // the tree is walked
	case *gateway.APIError:
		return err.Body
	case *gateway.DecodeError:
		return err.Body
	case *gateway.OutcomeUnknownError:
		return err.Body
	default:
		return nil
	}
}

func isDocumented(err error) bool {
	switch err.(type) { //nolint:errorlint // a call returns it as it is
	case *gateway.ArgumentError, *gateway.APIError, *gateway.DecodeError, *gateway.TransportError, *gateway.OutcomeUnknownError,
		*gateway.OrderConflictError, *gateway.WaitError:
		return true
	default:
		return false
	}
}

// ShowsKey reports whether a way of printing a value shows the key, in plain, in
// hexadecimal or as numbers.
func ShowsKey(v any) bool {
	encoded, _ := json.Marshal(v)
	text := fmt.Sprintf("%v %+v %#v %s %q %d %x %s", v, v, v, v, v, v, v, encoded)
	return strings.Contains(text, Key) || strings.Contains(text, fmt.Sprintf("%x", Key)) ||
		strings.Contains(text, strings.Trim(fmt.Sprint([]byte(Key)), "[]"))
}
