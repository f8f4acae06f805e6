// This program makes one read, to measure the size of a program with this client.
package main

import (
	"context"
	"fmt"

	"github.com/go-resty/resty/v2"
)

func main() {
	c := resty.New().SetBaseURL("https://gateway.example").SetHeader("x-api-key", "key")
	var withdrawal struct {
		Result struct{ Status, Amount string }
	}
	_, err := c.R().SetContext(context.Background()).SetPathParam("id", "17").SetResult(&withdrawal).
		Get("/api/withdrawal/inquiry/{id}")
	fmt.Println(withdrawal, err)
}
