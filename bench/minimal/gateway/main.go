// A program that makes one read, to see what a client brings with it.
package main

import (
	"context"
	"fmt"

	"github.com/cryptogw/gateway"
)

func main() {
	c, err := gateway.New("https://gateway.example", "key")
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Withdrawal(context.Background(), "17"))
}
