// Command withdrawal prints every change of a withdrawal until it is COMPLETED or
// FAILED:
//
//	go run ./examples/withdrawal ID
//
// `gateway withdrawal ID --wait` waits with flags, JSON and progress.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/cryptogw/gateway"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: withdrawal ID")
	}
	client, err := gateway.FromEnv() // GATEWAY_BASE_URL and GATEWAY_API_KEY; or New with both
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := watch(ctx, client, os.Args[1], os.Stdout); err != nil {
		stop()
		log.Fatal(err)
	}
}

// watch prints the changes of a withdrawal, for at most an hour.
func watch(ctx context.Context, client *gateway.Client, id string, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	_, err := client.WaitWithdrawal(ctx, id, gateway.WaitOptions{Changed: func(w *gateway.Withdrawal) {
		fmt.Fprintf(stdout, "%s: %s %s on %s to %s\n", w.Status, w.Amount, w.Coin, w.Network, w.Destination)
	}})
	return err // FAILED, the time is over, Ctrl-C, or the service refuses the inquiry
}
