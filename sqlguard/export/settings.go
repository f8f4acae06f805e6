// Package export reads the files that the operator of a gateway exports into the rows of a
// [sqlguard.Statement]. It reads what is not ambiguous. A record that cannot be read whole becomes a row with a
// Fault, which concludes nothing, and costs no other record.
package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for Zone, where the machine has none

	"github.com/cryptogw/gateway"
)

// Settings say how the files of one gateway are written. The zero Settings read the orders of the column order_id,
// with times that have a zone. Names of columns are those of the header of CSV, or of the members of JSON objects.
type Settings struct {
	Order   string `json:"order,omitempty"`   // the column of the merchant's identifier of an order; default "order_id"
	Invoice string `json:"invoice,omitempty"` // of the gateway's identifier of an invoice
	Created string `json:"created,omitempty"` // of the time when the invoice was created
	Price   string `json:"price,omitempty"`   // of the price in the fiat currency
	Amount  string `json:"amount,omitempty"`  // of the amount in the coin, as it was sent
	State   string `json:"state,omitempty"`   // of what the gateway says of the payment

	Separator    string            `json:"separator,omitempty"`    // between the columns of CSV: one character; default: what the header has
	Zone         string            `json:"zone,omitempty"`         // of times without one, such as "UTC" or "Europe/Berlin"
	TimeLayout   string            `json:"timeLayout,omitempty"`   // as package time has it, such as "02.01.2006 15:04:05"; or "unix" or "unix-ms"
	DecimalComma bool              `json:"decimalComma,omitempty"` // amounts are written as 1.234,50
	Where        map[string]string `json:"where,omitempty"`        // of these columns, the text that a record must have; others are left out

	location *time.Location
}

// ParseSettings reads Settings as JSON. The error is a [*gateway.ArgumentError].
func ParseSettings(text []byte) (s Settings, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, badSettings("are not read: " + err.Error())
	}
	return s, s.complete()
}

func badSettings(reason string) error {
	return &gateway.ArgumentError{Operation: "export", Name: "Settings", Reason: reason}
}

// complete sets the defaults, or returns what is wrong.
func (s *Settings) complete() (err error) {
	s.Order = cmp.Or(s.Order, "order_id")
	named := map[string]bool{}
	for _, column := range s.columns() {
		if column[0] != "where" && named[column[1]] {
			return badSettings("name one column twice")
		}
		named[column[1]] = true
	}
	if len([]rune(s.Separator)) > 1 || strings.ContainsAny(s.Separator, "\"\r\n\uFFFD") {
		return badSettings("have a separator that is not one character")
	}
	if s.Zone != "" {
		if s.location, err = time.LoadLocation(s.Zone); err != nil || s.Zone == "Local" {
			return badSettings("have a zone that is not known: write it as Europe/Berlin or UTC")
		}
	}
	if layout := s.TimeLayout; layout != "" && !strings.HasPrefix(layout, "unix") {
		if strings.Contains(layout, "MST") {
			return badSettings("have a timeLayout with MST: the names of zones are ambiguous")
		}
		if !strings.Contains(layout, "2006") || !strings.Contains(layout, "05") || !strings.Contains(layout, "02") {
			return badSettings("have a timeLayout without 2006, 02 or 05: write the time 2006-01-02 15:04:05 in the form of the file")
		}
		if s.location == nil && !hasZone(layout) {
			return badSettings("have a timeLayout without zone, and no zone")
		}
	}
	return nil
}

func hasZone(layout string) bool {
	return strings.Contains(layout, "Z07") || strings.Contains(layout, "-07")
}

// columns are those that are read, with what they are of. No error has a name of a setting, which may have been
// mistaken for a secret.
func (s *Settings) columns() (all [][2]string) {
	for _, column := range [][2]string{{"order", s.Order}, {"invoice", s.Invoice}, {"created", s.Created}, {"price", s.Price}, {"amount", s.Amount}, {"state", s.State}} {
		if column[1] != "" {
			all = append(all, column)
		}
	}
	for _, column := range slices.Sorted(maps.Keys(s.Where)) {
		all = append(all, [2]string{"where", column})
	}
	return all
}
