// Package gatewaytest provides a stand-in for the payment gateway, for use in
// tests, as net/http/httptest does for web servers. A [Server] listens on a
// loopback port, implements the operations of the service in memory,
// records every request and every invoice, and injects faults. It has its own
// clock, so that a test of something that takes days takes no time.
//
//	func TestCheckout(t *testing.T) {
//		gw := gatewaytest.NewServer()
//		defer gw.Close()
//
//		// The first invoice request is carried out, but its response is lost.
//		gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.FaultCommitThenDrop())
//
//		shop := NewShop(gw.URL, gw.APIKey) // the code under test
//		shop.Checkout("order-17")
//
//		if n := len(gw.InvoicesFor("order-17")); n != 1 {
//			t.Errorf("order-17 was invoiced %d times", n)
//		}
//	}
//
// The package is written from the description of the interface alone and shares no code with the
// client package, so that a mistake in one is not repeated in the other. It uses the
// standard library only and does not import testing.
//
// # Virtual time
//
// There are two ways to let a week pass. [Server.Advance] moves the clock of a
// server forward: planned changes of withdrawals take effect, and the window of a
// rate limit ends. That is enough for a test that sends its own requests, one
// before and one after.
//
// Code that waits, such as a client that polls or that honours a Retry-After,
// belongs in a bubble of testing/synctest, where time advances as soon as all
// goroutines are blocked. Sockets do not work in a bubble; a server of
// [NewMemoryServer] has none. Everything is created and closed inside the
// bubble, and the client takes its connections from [Server.Transport]:
//
//	func TestSynctestRecipe_Withdrawal(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			gw := gatewaytest.NewMemoryServer()
//			defer gw.Close()
//			client, err := gateway.New(gw.URL, gw.APIKey,
//				gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
//			if err != nil {
//				t.Fatal(err)
//			}
//
//			// The withdrawal completes in a week, and the limit is 100 requests a day.
//			const week = 7 * 24 * time.Hour
//			id := gw.Withdrawals()[0].WithdrawRequestID
//			if err := gw.SetStatusAfter(id, week, "COMPLETED"); err != nil {
//				t.Fatal(err)
//			}
//			gw.SetRateLimit(100, 24*time.Hour)
//
//			begun := time.Now()
//			paid, err := client.WaitWithdrawal(t.Context(), id, gateway.WaitOptions{MaxInterval: 10 * time.Minute})
//			if err != nil {
//				t.Fatal(err)
//			}
//			if waited := time.Since(begun); paid.Status != gateway.WithdrawalCompleted || waited < week {
//				t.Errorf("%s after %v", paid.Status, waited)
//			}
//		})
//	}
//
// The faults that take time, [FaultStall] and [FaultSlowBody], and the timeouts of the
// client use the time of the bubble too.
//
// # Your own gateway
//
// [Server.SetResult] makes an operation answer with a recorded result of your own gateway,
// so that a test shows whether the client, or a decoder that you give it, can read it.
//
// # Inventions
//
// The description leaves many things open. Where a server must do something
// nonetheless, this one follows an invention, and a test should not rely on the real
// service doing the same. The inventions are:
//
//   - the results of the lookups by identifier and by symbol, of the
//     exchange rates, of the balance and of a created invoice, unless [Server.SetResult]
//     has set them;
//   - that a lookup by coin symbol alone succeeds, and that a single path segment
//     is tried as an identifier first and as a symbol second;
//   - that the listing, the lookups and the exchange rates need no key;
//   - status 201 for a created invoice;
//   - every error status, and every error text but "x-api-key header is
//     required": 401 for a missing or wrong key, 400 for a body or query that cannot be
//     accepted, 404 for an unknown route, coin, pair or withdrawal, 405, 413, 415;
//   - the limit of 64 KiB for a request body, that an invoice with duplicate or
//     wrongly typed fields or with leading zeros in a price or amount is refused, and
//     that unknown fields are skipped;
//   - that a balance without entries is a 404, and that an identifier is found in either case;
//   - what happens to a second invoice for an order, how and when the status of a withdrawal
//     changes, the clock, and the rate limit: see their methods;
//   - all data: coins, networks, fees, limits, rates, balances, withdrawals.
//
// Documented, and followed: methods and paths, where the key travels, the
// envelope, the fields of the listing and of the withdrawal inquiry, status 201
// for that inquiry, and the error text for a missing key header.
package gatewaytest
