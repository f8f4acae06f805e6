// This program makes one read, to measure the size of a program with this client.
package main

import (
	"context"
	"fmt"

	"github.com/adshao/go-binance/v2"
)

func main() {
	c := binance.NewClient("key", "")
	fmt.Println(c.NewListBookTickersService().Symbol("BTCUSDT").Do(context.Background()))
}
