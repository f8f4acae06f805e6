package main

import "regexp"

// A table is the description of a record in docs/interface.md. It is written from that
// document alone and shares nothing with the client.
type table struct {
	shown  bool // whether the record is documented; if not, the fields are those that the client knows
	fields []field
}

// A field is a member of a record.
type field struct {
	name   string
	kind   string   // its JSON type; "" if not documented
	format *format  // of its text; nil if not documented
	record *table   // of its value; nil if that is not a record
	equals []string // the path of another member of the record with the same text; nil for none
}

// A format is the format of the text of a field.
type format struct {
	text *regexp.Regexp
	kind string // of the finding if the text does not match
	not  string // its detail; "" for the text itself
}

var (
	uuid      = &format{regexp.MustCompile(`^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$`), otherFormat, "no UUID"}
	decimal   = &format{regexp.MustCompile(`^-?\d+(\.\d+)?$`), otherFormat, "no decimal number"}
	timestamp = &format{regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`), otherFormat, "no ISO 8601 timestamp in UTC"}
	status    = &format{regexp.MustCompile(`^(PENDING|FAILED|COMPLETED)$`), unknownStatus, ""}
)

// I-57 to I-73.
var coinNetwork = &table{shown: true, fields: []field{
	{name: "id", kind: "string", format: uuid},
	{name: "withdrawalFee", kind: "string", format: decimal},
	{name: "swapFee", kind: "string", format: decimal},
	{name: "minWithdraw", kind: "string", format: decimal},
	{name: "maxWithdraw", kind: "string", format: decimal},
	{name: "depositable", kind: "boolean"},
	{name: "withdrawable", kind: "boolean"},
	{name: "confirmation", kind: "integer"},
	{name: "arrivalTime", kind: "integer"},
	{name: "expirationTime", kind: "integer"},
	{name: "networkId", kind: "string", equals: []string{"network", "id"}},
	{name: "coinId", kind: "string", equals: []string{"coin", "id"}},
	{name: "created_at", kind: "string", format: timestamp},
	{name: "updated_at", kind: "string", format: timestamp},
	{name: "network", kind: "object", record: network},
	{name: "coin", kind: "object", record: coin},
}}

// I-79 to I-83.
var network = &table{shown: true, fields: []field{
	{name: "id", kind: "string", format: uuid},
	{name: "name", kind: "string"},
	{name: "isActive", kind: "boolean"},
	{name: "created_at", kind: "string", format: timestamp},
	{name: "updated_at", kind: "string", format: timestamp},
}}

// I-84 to I-91.
var coin = &table{shown: true, fields: []field{
	{name: "id", kind: "string", format: uuid},
	{name: "name", kind: "string"},
	{name: "symbol", kind: "string"},
	{name: "precision", kind: "integer"},
	{name: "minAmount", kind: "string", format: decimal},
	{name: "isActive", kind: "boolean"},
	{name: "created_at", kind: "string", format: timestamp},
	{name: "updated_at", kind: "string", format: timestamp},
}}

// I-132 to I-138.
var withdrawal = &table{shown: true, fields: []field{
	{name: "status", kind: "string", format: status},
	{name: "destination", kind: "string"},
	{name: "amount", kind: "string", format: decimal},
	{name: "fee", kind: "string", format: decimal},
	{name: "coin", kind: "string"},
	{name: "network", kind: "string"},
	{name: "withdrawRequestId", kind: "string"},
}}

// I-42: meta has no members.
var meta = &table{shown: true}

// The body of the exchange rates is not documented. The client knows these names: I-96.
var rate = &table{fields: []field{
	{name: "symbol"},
	{name: "coinSymbol"},
	{name: "coin", record: coin},
	{name: "currency"},
	{name: "usd"},
	{name: "USD"},
	{name: "eur"},
	{name: "EUR"},
}}

// The body of the balance is not documented. The client knows these names: I-106.
var balance = &table{fields: []field{
	{name: "symbol"},
	{name: "coinSymbol"},
	{name: "coin", record: coin},
	{name: "currency"},
	{name: "networkName"},
	{name: "network", record: network},
	{name: "balance"},
	{name: "amount"},
	{name: "available"},
}}

// field returns the field with a name.
func (t *table) field(name string) (field, bool) {
	for _, f := range t.fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}
