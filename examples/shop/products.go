package main

import "github.com/shopspring/decimal"

// A product is something that the shop sells.
type product struct {
	ID, Name, Text string
	Price          decimal.Decimal
	Currency       string // "usd" or "eur"
}

// products returns all products in the order of the page.
func products() []product {
	price := decimal.RequireFromString
	return []product{
		{"mug", "Stoneware mug", "Thrown by hand, glazed in sea green, and made to be used every day.", price("18.00"), "usd"},
		{"print", "Tide table print", "A year of high water on one sheet of heavy paper, 50 × 70 cm.", price("42.50"), "eur"},
		{"blanket", "Wool blanket", "Woven from undyed wool. Warm when it is wet, too.", price("129.00"), "eur"},
		{"lamp", "Brass deck lamp", "Turned from solid brass, with a wick that burns for a long night.", price("240.00"), "usd"},
		{"postcard", "Postcard", "The harbour in the morning. Too small a price for some coins: see the checkout.", price("0.90"), "eur"},
	}
}

// productByID returns a product by its ID.
func productByID(id string) (product, bool) {
	for _, p := range products() {
		if p.ID == id {
			return p, true
		}
	}
	return product{}, false
}
