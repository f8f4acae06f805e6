package probe

import "regexp"

// A table is the description of a record in docs/interface.md. It is written from that
// document alone and shares nothing with the client.
type table struct {
	shown  bool // whether the record is documented; if not, the fields are those that the client knows
	fields []field

	statement string // of docs/interface.md: that there are such records
	others    string // the statement about members that are not in the table
}

// notStated is the statement that leaves open which other members there are.
const notStated = "I-6"

// A field is a member of a record.
type field struct {
	name      string
	statement string   // of docs/interface.md
	kind      string   // its JSON type; "" if not documented
	format    *format  // of its text; nil if not documented
	record    *table   // of its value; nil if that is not a record
	equals    []string // the path of another member of the record with the same text; nil for none
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
var coinNetwork = &table{shown: true, statement: "I-45", others: notStated, fields: []field{
	{name: "id", statement: "I-57", kind: "string", format: uuid},
	{name: "withdrawalFee", statement: "I-58", kind: "string", format: decimal},
	{name: "swapFee", statement: "I-59", kind: "string", format: decimal},
	{name: "minWithdraw", statement: "I-60", kind: "string", format: decimal},
	{name: "maxWithdraw", statement: "I-61", kind: "string", format: decimal},
	{name: "depositable", statement: "I-62", kind: "boolean"},
	{name: "withdrawable", statement: "I-63", kind: "boolean"},
	{name: "confirmation", statement: "I-64", kind: "integer"},
	{name: "arrivalTime", statement: "I-65", kind: "integer"},
	{name: "expirationTime", statement: "I-66", kind: "integer"},
	{name: "networkId", statement: "I-68", kind: "string", equals: []string{"network", "id"}},
	{name: "coinId", statement: "I-69", kind: "string", equals: []string{"coin", "id"}},
	{name: "created_at", statement: "I-70", kind: "string", format: timestamp},
	{name: "updated_at", statement: "I-71", kind: "string", format: timestamp},
	{name: "network", statement: "I-72", kind: "object", record: network},
	{name: "coin", statement: "I-73", kind: "object", record: coin},
}}

// I-79 to I-83.
var network = &table{shown: true, statement: "I-72", others: notStated, fields: []field{
	{name: "id", statement: "I-79", kind: "string", format: uuid},
	{name: "name", statement: "I-80", kind: "string"},
	{name: "isActive", statement: "I-81", kind: "boolean"},
	{name: "created_at", statement: "I-82", kind: "string", format: timestamp},
	{name: "updated_at", statement: "I-83", kind: "string", format: timestamp},
}}

// I-84 to I-91.
var coin = &table{shown: true, statement: "I-73", others: notStated, fields: []field{
	{name: "id", statement: "I-84", kind: "string", format: uuid},
	{name: "name", statement: "I-85", kind: "string"},
	{name: "symbol", statement: "I-86", kind: "string"},
	{name: "precision", statement: "I-87", kind: "integer"},
	{name: "minAmount", statement: "I-88", kind: "string", format: decimal},
	{name: "isActive", statement: "I-89", kind: "boolean"},
	{name: "created_at", statement: "I-90", kind: "string", format: timestamp},
	{name: "updated_at", statement: "I-91", kind: "string", format: timestamp},
}}

// I-132 to I-138.
var withdrawal = &table{shown: true, statement: "I-131", others: notStated, fields: []field{
	{name: "status", statement: "I-132", kind: "string", format: status},
	{name: "destination", statement: "I-133", kind: "string"},
	{name: "amount", statement: "I-134", kind: "string", format: decimal},
	{name: "fee", statement: "I-135", kind: "string", format: decimal},
	{name: "coin", statement: "I-136", kind: "string"},
	{name: "network", statement: "I-137", kind: "string"},
	{name: "withdrawRequestId", statement: "I-138", kind: "string"},
}}

// I-42: meta has no members.
var meta = &table{shown: true, statement: "I-42", others: "I-42"}

// The body of the exchange rates is not documented. The client knows these names: I-96.
var rate = &table{others: notStated, fields: []field{
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
var balance = &table{others: notStated, fields: []field{
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
