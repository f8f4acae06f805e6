// Package contract proves, from outside, the promise that a create-invoice
// call puts at most one invoice on the wire and tells the truth about it.
// It lets others judge client and stand-in by the interface as OpenAPI. Package
// suite is for whoever writes another stand-in; the rest are tests, and README.md
// says how to run them.
package contract
