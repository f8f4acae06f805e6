// A program that makes one read, to see what a client brings with it.
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
