// Package fields has the fields of the records in docs/interface.md, for tests. It is
// written from that document alone and shares nothing with the client.
package fields

// A Table is the description of a record.
type Table struct{ Fields []Field }

// A Field is a member of a record.
type Field struct {
	Name      string
	Statement string // of docs/interface.md
}

// Pair is a coin on a network: I-57 to I-73.
var Pair = &Table{Fields: []Field{
	{"id", "I-57"},
	{"withdrawalFee", "I-58"},
	{"swapFee", "I-59"},
	{"minWithdraw", "I-60"},
	{"maxWithdraw", "I-61"},
	{"depositable", "I-62"},
	{"withdrawable", "I-63"},
	{"confirmation", "I-64"},
	{"arrivalTime", "I-65"},
	{"expirationTime", "I-66"},
	{"networkId", "I-68"},
	{"coinId", "I-69"},
	{"created_at", "I-70"},
	{"updated_at", "I-71"},
	{"network", "I-72"},
	{"coin", "I-73"},
}}

// Network is the network of a pair: I-79 to I-83.
var Network = &Table{Fields: []Field{
	{"id", "I-79"},
	{"name", "I-80"},
	{"isActive", "I-81"},
	{"created_at", "I-82"},
	{"updated_at", "I-83"},
}}

// Coin is the coin of a pair: I-84 to I-91.
var Coin = &Table{Fields: []Field{
	{"id", "I-84"},
	{"name", "I-85"},
	{"symbol", "I-86"},
	{"precision", "I-87"},
	{"minAmount", "I-88"},
	{"isActive", "I-89"},
	{"created_at", "I-90"},
	{"updated_at", "I-91"},
}}

// Withdrawal is the result of an inquiry: I-132 to I-138.
var Withdrawal = &Table{Fields: []Field{
	{"status", "I-132"},
	{"destination", "I-133"},
	{"amount", "I-134"},
	{"fee", "I-135"},
	{"coin", "I-136"},
	{"network", "I-137"},
	{"withdrawRequestId", "I-138"},
}}
