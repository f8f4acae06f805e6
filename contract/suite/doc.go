// Package suite is a table of what a payment gateway must do, by the pages that
// describe it and nothing else. It is for everybody who runs something that
// calls itself one: a stand-in, a mock made from the OpenAPI document, or the
// service. Each [Case] names the section that it is from.
//
//	func TestMyStandIn(t *testing.T) {
//		gw := mystandin.Start(t)
//		suite.Run(t, suite.Target{BaseURL: gw.URL, APIKey: gw.Key, AllowWrites: true})
//	}
//
// It sends what [gateway.Client] sends, and by itself what the client refuses to
// send. What the pages call not shown, a gateway may do as it likes: the body of
// a balance may be anything, as long as it is JSON under a status of success.
// [Target].Readable asks for more: that the client can make something of it.
package suite
