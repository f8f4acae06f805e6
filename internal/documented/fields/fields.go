// Package fields has the fields of the records in docs/interface.md, one by one, for
// tests. It is written from that document alone and shares
// nothing with the client.
package fields

import (
	"regexp"
	"time"
)

// A Table is the description of a record.
type Table struct {
	Documented bool // whether the record is documented; if not, the fields are those that the client knows
	Fields     []Field

	Statement string // of docs/interface.md: that there are such records
	Others    string // the statement about members that are not in the table
}

// NotStated is the statement that leaves open which other members there are.
const NotStated = "I-6"

// A Field is a member of a record.
type Field struct {
	Name      string
	Statement string   // of docs/interface.md
	Kind      string   // its JSON type; "" if not documented
	Format    *Format  // of its text; nil if not documented
	Record    *Table   // of its value; nil if that is not a record
	Equals    []string // the path of another member of the record with the same text; nil for none
}

// A Format is the format of the text of a field.
type Format struct {
	matches func(text string) bool
	kind    string // of the difference if the text does not match
	not     string // its detail; "" for the text itself
}

func pattern(expression, kind, not string) *Format {
	return &Format{regexp.MustCompile(expression).MatchString, kind, not}
}

var (
	uuid      = pattern(`^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$`, OtherFormat, "no UUID")
	decimal   = pattern(`^-?\d+(\.\d+)?$`, OtherFormat, "no decimal number")
	eight     = pattern(`^-?\d+\.\d{8}$`, OtherFormat, "no decimal number of eight decimal places")
	upperCase = pattern(`^[^\p{Ll}]+$`, OtherFormat, "not in upper case")
	timestamp = &Format{isUTC, OtherFormat, "no ISO 8601 timestamp in UTC"}
	status    = pattern(`^(PENDING|FAILED|COMPLETED)$`, UnknownStatus, "")
)

// isUTC reports whether a text is a timestamp in UTC, as ISO 8601 has it in RFC 3339.
func isUTC(text string) bool {
	at, err := time.Parse(time.RFC3339, text)
	_, offset := at.Zone()
	return err == nil && offset == 0
}

// Pair is a coin on a network: I-57 to I-73.
var Pair = &Table{Documented: true, Statement: "I-45", Others: NotStated, Fields: []Field{
	{Name: "id", Statement: "I-57", Kind: "string", Format: uuid},
	{Name: "withdrawalFee", Statement: "I-58", Kind: "string", Format: decimal},
	{Name: "swapFee", Statement: "I-59", Kind: "string", Format: decimal},
	{Name: "minWithdraw", Statement: "I-60", Kind: "string", Format: decimal},
	{Name: "maxWithdraw", Statement: "I-61", Kind: "string", Format: decimal},
	{Name: "depositable", Statement: "I-62", Kind: "boolean"},
	{Name: "withdrawable", Statement: "I-63", Kind: "boolean"},
	{Name: "confirmation", Statement: "I-64", Kind: "integer"},
	{Name: "arrivalTime", Statement: "I-65", Kind: "integer"},
	{Name: "expirationTime", Statement: "I-66", Kind: "integer"},
	{Name: "networkId", Statement: "I-68", Kind: "string", Equals: []string{"network", "id"}},
	{Name: "coinId", Statement: "I-69", Kind: "string", Equals: []string{"coin", "id"}},
	{Name: "created_at", Statement: "I-70", Kind: "string", Format: timestamp},
	{Name: "updated_at", Statement: "I-71", Kind: "string", Format: timestamp},
	{Name: "network", Statement: "I-72", Kind: "object", Record: Network},
	{Name: "coin", Statement: "I-73", Kind: "object", Record: Coin},
}}

// Network is the network of a pair: I-79 to I-83.
var Network = &Table{Documented: true, Statement: "I-72", Others: NotStated, Fields: []Field{
	{Name: "id", Statement: "I-79", Kind: "string", Format: uuid},
	{Name: "name", Statement: "I-80", Kind: "string"},
	{Name: "isActive", Statement: "I-81", Kind: "boolean"},
	{Name: "created_at", Statement: "I-82", Kind: "string", Format: timestamp},
	{Name: "updated_at", Statement: "I-83", Kind: "string", Format: timestamp},
}}

// Coin is the coin of a pair: I-84 to I-91.
var Coin = &Table{Documented: true, Statement: "I-73", Others: NotStated, Fields: []Field{
	{Name: "id", Statement: "I-84", Kind: "string", Format: uuid},
	{Name: "name", Statement: "I-85", Kind: "string"},
	{Name: "symbol", Statement: "I-86", Kind: "string", Format: upperCase},
	{Name: "precision", Statement: "I-87", Kind: "integer"},
	{Name: "minAmount", Statement: "I-88", Kind: "string", Format: eight},
	{Name: "isActive", Statement: "I-89", Kind: "boolean"},
	{Name: "created_at", Statement: "I-90", Kind: "string", Format: timestamp},
	{Name: "updated_at", Statement: "I-91", Kind: "string", Format: timestamp},
}}

// Withdrawal is the result of an inquiry: I-132 to I-138.
var Withdrawal = &Table{Documented: true, Statement: "I-131", Others: NotStated, Fields: []Field{
	{Name: "status", Statement: "I-132", Kind: "string", Format: status},
	{Name: "destination", Statement: "I-133", Kind: "string"},
	{Name: "amount", Statement: "I-134", Kind: "string"},
	{Name: "fee", Statement: "I-135", Kind: "string"},
	{Name: "coin", Statement: "I-136", Kind: "string"},
	{Name: "network", Statement: "I-137", Kind: "string"},
	{Name: "withdrawRequestId", Statement: "I-138", Kind: "string"},
}}

// Field returns the field with a name.
func (t *Table) Field(name string) (Field, bool) {
	for _, f := range t.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}
