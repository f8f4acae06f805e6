// Package gatewaytest is a stand-in for the payment gateway, for tests: what
// net/http/httptest is to a web server. A [Server] listens on a loopback port,
// answers the seven operations of the service from memory, keeps a journal of
// what it was asked and of what was committed, and makes trouble on request. It
// has a clock of its own, so that what takes days is tested in no time.
//
//	func TestCheckout(t *testing.T) {
//		gw := gatewaytest.NewServer()
//		defer gw.Close()
//
//		// The first invoice request is carried out, but its answer is lost.
//		gw.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.CommitThenDrop())
//
//		shop := NewShop(gw.URL, gw.APIKey) // the code under test
//		shop.Checkout("order-17")
//
//		if n := len(gw.InvoicesFor("order-17")); n != 1 {
//			t.Errorf("order-17 was invoiced %d times", n)
//		}
//	}
//
// It is built from the description of the service alone and shares no code with
// the client package, so that a mistake in one is not repeated in the other. It
// uses the standard library only and does not import testing.
//
// # Virtual time
//
// There are two ways to let a week pass. [Server.Advance] moves the clock of a
// server: withdrawals that wait for that time move on, and a rate limit begins
// anew. That is enough for a test that asks by itself, once before and once
// after.
//
// Code that waits by itself, such as a client that polls or that honours a
// Retry-After, belongs in a bubble of testing/synctest, where time passes as
// soon as everybody waits. Sockets do not work in a bubble; a server of
// [NewMemoryServer] has none. Everything is made and closed inside of the
// bubble, and the client takes its connections from [Server.Transport]:
//
//	func TestSynctestRecipe_Payout(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			gw := gatewaytest.NewMemoryServer()
//			defer gw.Close()
//			client, err := gateway.New(gw.URL, gw.APIKey,
//				gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
//			if err != nil {
//				t.Fatal(err)
//			}
//
//			// The withdrawal is done in a week, and 100 requests a day are answered.
//			const week = 7 * 24 * time.Hour
//			id := gw.Withdrawals()[0].WithdrawRequestID
//			if err := gw.SetStatusAfter(id, week, "COMPLETED"); err != nil {
//				t.Fatal(err)
//			}
//			gw.SetRateLimit(100, 24*time.Hour)
//
//			begun := time.Now()
//			paid, err := client.WaitWithdrawal(t.Context(), id, gateway.WaitOptions{})
//			if err != nil {
//				t.Fatal(err)
//			}
//			if waited := time.Since(begun); paid.Status != gateway.WithdrawalCompleted || waited < week {
//				t.Errorf("%s after %v", paid.Status, waited)
//			}
//		})
//	}
//
// The troubles that take time, [Stall] and [SlowBody], and the timeouts of the
// client keep the time of the bubble too.
//
// # Inventions
//
// The description leaves many things out. Where a server has to do something
// all the same, this one makes it up, and a test should not rely on the real
// service doing likewise:
//
//   - the bodies of the lookups by identifier and by symbol, of the exchange
//     rates, of the balance and of a created invoice; [Server.SetShape] switches
//     each of them between several shapes, see [Shape];
//   - that a lookup by coin symbol alone is answered, and that one path segment is
//     read as an identifier first and as a symbol second;
//   - that listing, lookup and exchange rates need no key;
//   - status 201 for a created invoice;
//   - every error status, and every error text but "x-api-key header is required":
//     401 for a missing or wrong key, 400 for a body or query that cannot be
//     accepted, 404 for an unknown route, coin, pair or withdrawal, 405, 413, 415;
//   - the limit of 64 KiB for a request body, and that an invoice with unknown,
//     duplicate or wrongly typed fields is refused;
//   - that one order may be invoiced many times;
//   - that a balance nobody holds is a 404;
//   - how and when the status of a withdrawal moves, see [Server.SetWithdrawalStatus],
//     [Server.SetStatusAfterRequests] and [Server.SetStatusAfter];
//   - the clock, which a test may set ahead, and its time in the Date header;
//   - rate limits: that there are any, how they count, and how a request too many
//     is refused, see [Server.SetRateLimit];
//   - the members and the status of [Drift], which are invented to be unknown;
//   - all data: coins, networks, fees, limits, rates, balances, withdrawals.
//
// Documented, and followed: methods and paths, where the key travels, the
// envelope, the fields of the listing and of the withdrawal inquiry, status 201
// for that inquiry, and the error text for a missing key header.
package gatewaytest
