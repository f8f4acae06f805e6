// A program that makes one read, to see what a client brings with it.
package main

import (
	"context"
	"fmt"

	"github.com/digitalocean/godo"
)

func main() {
	c := godo.NewFromToken("key")
	fmt.Println(c.Balance.Get(context.Background()))
}
