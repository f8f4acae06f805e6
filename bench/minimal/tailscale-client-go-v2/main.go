// A program that makes one read, to see what a client brings with it.
package main

import (
	"context"
	"fmt"

	"tailscale.com/client/tailscale/v2"
)

func main() {
	c := &tailscale.Client{APIKey: "key"}
	fmt.Println(c.Contacts().Get(context.Background()))
}
