// A program that makes one read, to see what a client brings with it.
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
