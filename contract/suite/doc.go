// Package suite is a table of what a payment gateway must do according to
// docs/interface.md. It applies to every implementation: a stand-in, a mock made from
// the OpenAPI document, or the service. Each [Case] names the statements that it is
// from.
//
//	func TestMyStandIn(t *testing.T) {
//		gw := mystandin.Start(t)
//		suite.Run(t, suite.Target{BaseURL: gw.URL, APIKey: gw.Key, AllowWrites: true})
//	}
//
// Requests are sent through [gateway.Client], and without it where the client would
// refuse them. A gateway is free in what is not stated there: the body of a
// balance may be any JSON with a status of success. [Target].Readable requires more:
// that the client can read it.
package suite
