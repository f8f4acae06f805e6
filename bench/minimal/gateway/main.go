// This program makes one read, to measure the size of a program with this client.
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
