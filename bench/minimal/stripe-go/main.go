// This program makes one read, to measure the size of a program with this client.
package main

import (
	"context"
	"fmt"

	"github.com/stripe/stripe-go/v85"
)

func main() {
	c := stripe.NewClient("key")
	fmt.Println(c.V1Balance.Retrieve(context.Background(), nil))
}
