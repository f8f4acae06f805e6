// This program makes one read, to measure the size of a program with this client.
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
