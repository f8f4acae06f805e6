// Package fields has the fields of the records in docs/interface.md, for tests. It is
// written from that document alone and shares nothing with the client.
package fields

// A Table is the description of a record.
type Table struct{ Fields []Field }

// A Field is a member of a record.
type Field struct {
	Name      string
	Statement string // of docs/interface.md
	Kind      string // its JSON type, or "integer"
}

// Pair is a coin on a network: I-57 to I-73.
var Pair = &Table{Fields: []Field{
	{Name: "id", Statement: "I-57", Kind: "string"},
	{Name: "withdrawalFee", Statement: "I-58", Kind: "string"},
	{Name: "swapFee", Statement: "I-59", Kind: "string"},
	{Name: "minWithdraw", Statement: "I-60", Kind: "string"},
	{Name: "maxWithdraw", Statement: "I-61", Kind: "string"},
	{Name: "depositable", Statement: "I-62", Kind: "boolean"},
	{Name: "withdrawable", Statement: "I-63", Kind: "boolean"},
	{Name: "confirmation", Statement: "I-64", Kind: "integer"},
	{Name: "arrivalTime", Statement: "I-65", Kind: "integer"},
	{Name: "expirationTime", Statement: "I-66", Kind: "integer"},
	{Name: "networkId", Statement: "I-68", Kind: "string"},
	{Name: "coinId", Statement: "I-69", Kind: "string"},
	{Name: "created_at", Statement: "I-70", Kind: "string"},
	{Name: "updated_at", Statement: "I-71", Kind: "string"},
	{Name: "network", Statement: "I-72", Kind: "object"},
	{Name: "coin", Statement: "I-73", Kind: "object"},
}}

// Network is the network of a pair: I-79 to I-83.
var Network = &Table{Fields: []Field{
	{Name: "id", Statement: "I-79", Kind: "string"},
	{Name: "name", Statement: "I-80", Kind: "string"},
	{Name: "isActive", Statement: "I-81", Kind: "boolean"},
	{Name: "created_at", Statement: "I-82", Kind: "string"},
	{Name: "updated_at", Statement: "I-83", Kind: "string"},
}}

// Coin is the coin of a pair: I-84 to I-91.
var Coin = &Table{Fields: []Field{
	{Name: "id", Statement: "I-84", Kind: "string"},
	{Name: "name", Statement: "I-85", Kind: "string"},
	{Name: "symbol", Statement: "I-86", Kind: "string"},
	{Name: "precision", Statement: "I-87", Kind: "integer"},
	{Name: "minAmount", Statement: "I-88", Kind: "string"},
	{Name: "isActive", Statement: "I-89", Kind: "boolean"},
	{Name: "created_at", Statement: "I-90", Kind: "string"},
	{Name: "updated_at", Statement: "I-91", Kind: "string"},
}}

// Withdrawal is the result of an inquiry: I-132 to I-138.
var Withdrawal = &Table{Fields: []Field{
	{Name: "status", Statement: "I-132", Kind: "string"},
	{Name: "destination", Statement: "I-133", Kind: "string"},
	{Name: "amount", Statement: "I-134", Kind: "string"},
	{Name: "fee", Statement: "I-135", Kind: "string"},
	{Name: "coin", Statement: "I-136", Kind: "string"},
	{Name: "network", Statement: "I-137", Kind: "string"},
	{Name: "withdrawRequestId", Statement: "I-138", Kind: "string"},
}}
