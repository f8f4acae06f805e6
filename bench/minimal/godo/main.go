// This program makes one read, to measure the size of a program with this client.
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
