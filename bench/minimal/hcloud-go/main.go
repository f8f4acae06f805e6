// This program makes one read, to measure the size of a program with this client.
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
