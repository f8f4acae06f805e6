package main

import "strings"

// A comparison is a row of the table: two benchmarks, of which the first does a
// multiple of the work of the second, and the upper bound of the ratio.
type comparison struct {
	name, ours, floor string
	times             float64
	go126, go127      string
}

func (c comparison) goal(release string) string {
	if c.go127 != "" && strings.HasPrefix(release, "go1.27") {
		return c.go127
	}
	return c.go126
}

var comparisons = []comparison{
	{"a read", "Withdrawal/client", "Withdrawal/floor", 1, "0.80, allocs 0.85", "0.95, allocs 0.95"},
	{"an invoice", "CreateInvoice/client", "CreateInvoice/floor", 1, "1.05", ""},
	{"an invoice that the guard has, beside its lookup", "CreateInvoice/replay", "CreateInvoice/lookup", 1, "", ""},
	{"a read, to careful code", "Withdrawal/client", "Withdrawal/careful", 1, "", ""},
	{"an invoice, to careful code", "CreateInvoice/client", "CreateInvoice/careful", 1, "", ""},
	listing("a listing of 100", "100", "floor", "0.33, allocs 0.5", "0.6, allocs 0.5"),
	listing("1,000", "1000", "floor", "0.33, allocs 0.5", "0.6, allocs 0.5"),
	listing("5,000", "5000", "floor", "0.33, allocs 0.5", "0.6, allocs 0.5"),
	listing("50,000", "50000", "floor", "", ""),
	{"1,000, each with its own fee", "CatalogListing/client", "CatalogListing/floor", 1, "0.33, allocs 0.11", "0.6, allocs 0.11"},
	listing("100, to careful code", "100", "careful", "", ""),
	listing("1,000, to careful code", "1000", "careful", "", ""),
	listing("100, validated only", "100", "validated", "2.5", ""),
	listing("1,000, validated only", "1000", "validated", "2.5", ""),
	listing("5,000, validated only", "5000", "validated", "2.5", ""),
	{"a record of 50,000 beside one of 1,000", "CoinNetworks/pairs=50000/client", "CoinNetworks/pairs=1000/client", 50, "1.1", ""},
	{"a record of 50,000 beside one of 100", "CoinNetworks/pairs=50000/client", "CoinNetworks/pairs=100/client", 500, "1.1", ""},
	loopback("loopback, 1 caller", "1", "floor", "1.0"),
	loopback("16 callers", "16", "floor", "1.0"),
	loopback("256 callers", "256", "floor", "1.0"),
	loopback("16 callers, to careful code", "16", "careful", ""),
	{"Cache.Get", "Cache_Get/cache", "Cache_Get/by_hand", 1, "50 ns, allocs none", ""},
	{"Catalog.ByID", "Catalog/ByID", "", 1, "50 ns, allocs none", ""},
	{"Catalog.Find", "Catalog/Find", "Catalog/Find/by_a_joined_key", 1, "50 ns, allocs none", ""},
	{"ToCoin", "ExchangeRates_ToCoin/client", "ExchangeRates_ToCoin/floor", 1, "", ""},
	{"CheckWithdrawal", "CheckWithdrawal/client", "CheckWithdrawal/floor", 1, "", ""},
}

func listing(name, pairs, floor, go126, go127 string) comparison {
	return comparison{name, "CoinNetworks/pairs=" + pairs + "/client", "CoinNetworks/pairs=" + pairs + "/" + floor, 1, go126, go127}
}

func loopback(name, callers, floor, goal string) comparison {
	return comparison{name, "Loopback/callers=" + callers + "/client", "Loopback/callers=" + callers + "/" + floor, 1, goal, ""}
}
