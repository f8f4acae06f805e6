package gateway_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// Two clients share a guard, as the processes of a shop share one of package sqlguard: the second gets the invoice
// that the first has created.
func ExampleWithOrderGuard() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	guard := new(gateway.MemoryGuard) // of one process; sqlguard.New(db) returns one for many

	for range 2 {
		client := connect(gw, gateway.WithOrderGuard(guard))
		invoice, err := client.CreateInvoice(context.Background(), order("A-17"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("replayed:", invoice.Replayed, "invoices:", len(gw.InvoicesFor("A-17")))
	}
	// Output:
	// replayed: false invoices: 1
	// replayed: true invoices: 1
}

// The response to an invoice is lost. A person looks the order up at the gateway, and records the finding.
func ExampleMemoryGuard_Resolve() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	guard := new(gateway.MemoryGuard)
	client, ctx := connect(gw, gateway.WithOrderGuard(guard)), context.Background()
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	_, err := client.CreateInvoice(ctx, order("A-17"))
	fmt.Println("before:", gateway.OutcomeOf(err))

	pending, err := guard.Pending(ctx, gateway.PendingQuery{})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range pending {
		fmt.Println("pending:", o.OrderID, o.State)
		finding := gateway.Finding{Exists: len(gw.InvoicesFor(o.OrderID)) > 0, By: "anna@shop.example"}
		if err := guard.Resolve(ctx, o, finding); err != nil {
			log.Fatal(err) // such as ErrTooEarly, for a finding that no invoice exists
		}
	}

	_, err = client.CreateInvoice(ctx, order("A-17"))
	fmt.Println("after:", gateway.OutcomeOf(err), "with", len(gw.InvoicesFor("A-17")), "invoice")
	// Output:
	// before: unknown
	// pending: A-17 unknown
	// after: succeeded with 1 invoice
}

// The operator has confirmed that a repeated orderId returns the first invoice: the client sends it again by itself.
func ExampleWithIdempotentOrders() {
	gw := gatewaytest.NewServer()
	defer gw.Close()
	gw.SetRepeatedOrders(gatewaytest.RepeatSame)
	gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
	retry := gateway.RetryPolicy{BaseDelay: time.Millisecond} // by default 100 ms
	client := connect(gw, gateway.WithIdempotentOrders(), gateway.WithRetry(retry))

	_, err := client.CreateInvoice(context.Background(), order("A-17"))
	fmt.Println(gateway.OutcomeOf(err), len(gw.Requests()), "requests", len(gw.InvoicesFor("A-17")), "invoice")
	// Output: succeeded 2 requests 1 invoice
}
