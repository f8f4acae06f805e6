package main

import "github.com/shopspring/decimal"

// A product is something that the shop sells.
type product struct {
	ID, Name, Text string
	Price          decimal.Decimal
	Currency       string // "usd" or "eur"
}

// products are in the order of the page.
var products = []product{
	{"mug", "Stoneware mug", "Thrown by hand, glazed in sea green, and made to be used every day.", decimal.RequireFromString("18.00"), "usd"},
	{"print", "Tide table print", "A year of high water on one sheet of heavy paper, 50 × 70 cm.", decimal.RequireFromString("42.50"), "eur"},
	{"blanket", "Wool blanket", "Woven from undyed wool. Warm even when it is wet.", decimal.RequireFromString("129.00"), "eur"},
	{"lamp", "Brass deck lamp", "Turned from solid brass, with a wick that burns for a long night.", decimal.RequireFromString("240.00"), "usd"},
	{"postcard", "Postcard", "The harbour in the morning. Too small a price for some coins: see the checkout.", decimal.RequireFromString("0.90"), "eur"},
}

func productByID(id string) (p product, ok bool) {
	for _, p = range products {
		if p.ID == id {
			return p, true
		}
	}
	return product{}, false
}

func productName(id string) string {
	p, _ := productByID(id)
	return p.Name
}
