package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// A form has a check for each member of a record.
type form map[string]func(json.RawMessage) error

// networkForm, coinForm, pairForm and withdrawalForm are the tables of
// "Resources and their fields".
func networkForm() form {
	return form{"id": uuid, "name": text, "isActive": flag, "created_at": timestamp, "updated_at": timestamp}
}

func coinForm() form {
	return form{
		"id": uuid, "name": text, "symbol": matching(`^[^\p{Ll}]+$`, "a string in upper case"), "precision": integer,
		"minAmount": matching(`^-?[0-9]+\.[0-9]{8}$`, "a decimal in a string, with eight fractional digits"),
		"isActive":  flag, "created_at": timestamp, "updated_at": timestamp,
	}
}

func pairForm() form {
	decimal := matching(`^-?[0-9]+(\.[0-9]+)?$`, "a decimal in a string")
	return form{
		"id": uuid, "withdrawalFee": decimal, "swapFee": decimal, "minWithdraw": decimal, "maxWithdraw": decimal,
		"depositable": flag, "withdrawable": flag, "confirmation": integer, "arrivalTime": integer, "expirationTime": integer,
		"networkId": text, "coinId": text, "created_at": timestamp, "updated_at": timestamp,
		"network": networkForm().check, "coin": coinForm().check,
	}
}

func withdrawalForm() form {
	return form{
		"status":      matching("^(PENDING|FAILED|COMPLETED)$", "one of PENDING, FAILED and COMPLETED"),
		"destination": text, "amount": text, "fee": text, "coin": text, "network": text, "withdrawRequestId": text,
	}
}

// check returns what is wrong with a record. It may have more members than these.
func (f form) check(value json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil {
		return fmt.Errorf("is not a record: %w", err)
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(f)) {
		member, ok := members[name]
		if !ok {
			wrong = append(wrong, fmt.Errorf("%s is missing", name))
		} else if err := f[name](member); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(wrong...)
}

// is reads a member that must be of one kind.
func is[T any](value json.RawMessage, kind string) (v T, err error) {
	if string(value) == "null" || json.Unmarshal(value, &v) != nil {
		return v, fmt.Errorf("%.100s is not %s", value, kind)
	}
	return v, nil
}

func text(value json.RawMessage) error {
	_, err := is[string](value, "a string")
	return err
}

func flag(value json.RawMessage) error {
	_, err := is[bool](value, "true or false")
	return err
}

func integer(value json.RawMessage) error {
	_, err := is[int64](value, "an integer")
	return err
}

func uuid(value json.RawMessage) error {
	return matching("^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "in UUID format")(value)
}

// timestamp accepts ISO 8601 in the form of RFC 3339, in UTC.
func timestamp(value json.RawMessage) error {
	const kind = "an ISO 8601 timestamp in UTC"
	s, err := is[string](value, kind)
	if err != nil {
		return err
	}
	if at, err := time.Parse(time.RFC3339, s); err != nil {
		return fmt.Errorf("%.100s is not %s", value, kind)
	} else if _, offset := at.Zone(); offset != 0 {
		return fmt.Errorf("%.100s is not %s", value, kind)
	}
	return nil
}

// matching is a string that matches a pattern.
func matching(pattern, kind string) func(json.RawMessage) error {
	compiled := regexp.MustCompile(pattern)
	return func(value json.RawMessage) error {
		if s, err := is[string](value, kind); err != nil || !compiled.MatchString(s) {
			return fmt.Errorf("%.100s is not %s", value, kind)
		}
		return nil
	}
}
