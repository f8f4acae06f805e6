// A program that makes one read, to see what a client brings with it.
package main

import (
	"context"
	"fmt"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

func main() {
	c := hcloud.NewClient(hcloud.WithToken("key"))
	fmt.Println(c.Location.GetByID(context.Background(), 17))
}
