// A program that makes one read, to see what a client brings with it.
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
