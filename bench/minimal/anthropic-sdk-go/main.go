// This program makes one read, to measure the size of a program with this client.
package main

import (
	"context"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func main() {
	c := anthropic.NewClient(option.WithAPIKey("key"))
	fmt.Println(c.Models.Get(context.Background(), "model-17", anthropic.ModelGetParams{}))
}
