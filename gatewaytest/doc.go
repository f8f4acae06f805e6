// Package gatewaytest is a stand-in for the payment gateway, for tests: what
// net/http/httptest is to a web server. A [Server] listens on a loopback port,
// answers the seven operations of the service from memory, keeps a journal of
// what it was asked and of what was committed, and makes trouble on request.
//
//	func TestCheckout(t *testing.T) {
//		gw := gatewaytest.NewServer()
//		defer gw.Close()
//
//		// The first invoice request is carried out, but its answer is lost.
//		gw.Inject(gatewaytest.OpCreateInvoice, 1, gatewaytest.CommitThenDrop())
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
//   - how the status of a withdrawal moves, see [Server.AdvanceWithdrawal];
//   - all data: coins, networks, fees, limits, rates, balances, withdrawals.
//
// Documented, and followed: methods and paths, where the key travels, the
// envelope, the fields of the listing and of the withdrawal inquiry, status 201
// for that inquiry, and the error text for a missing key header.
package gatewaytest
