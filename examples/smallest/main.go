// Command smallest creates an invoice. It is the program of the README.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

func main() {
	client, err := gateway.FromEnv() // reads GATEWAY_BASE_URL and GATEWAY_API_KEY
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	invoice, err := client.CreateInvoice(ctx, gateway.InvoiceRequest{
		OrderID: "A-17", Price: decimal.RequireFromString("10.50"), Amount: decimal.RequireFromString("10.50"),
	})
	if err := errors.Join(err, client.Shutdown(ctx)); err != nil { // Shutdown is for the end of a program
		log.Fatal(err)
	}
	fmt.Printf("order %s has an invoice: %s\n", invoice.OrderID, invoice.Raw)
}
