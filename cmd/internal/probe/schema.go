package probe

import "github.com/cryptogw/gateway/internal/documented/fields"

// I-42: meta has no members.
var meta = &fields.Table{Documented: true, Statement: "I-42", Others: "I-42"}

// The body of the exchange rates is not documented. The client knows these names: I-96.
var rate = &fields.Table{Others: fields.NotStated, Fields: []fields.Field{
	{Name: "symbol"},
	{Name: "coinSymbol"},
	{Name: "coin", Record: fields.Coin},
	{Name: "currency"},
	{Name: "usd"},
	{Name: "USD"},
	{Name: "eur"},
	{Name: "EUR"},
}}

// The body of the balance is not documented. The client knows these names: I-106.
var balance = &fields.Table{Others: fields.NotStated, Fields: []fields.Field{
	{Name: "symbol"},
	{Name: "coinSymbol"},
	{Name: "coin", Record: fields.Coin},
	{Name: "currency"},
	{Name: "networkName"},
	{Name: "network", Record: fields.Network},
	{Name: "balance"},
	{Name: "amount"},
	{Name: "available"},
}}
