// Package contract proves, from outside, that a create-invoice call puts at most one
// invoice on the wire and reports its outcome truthfully. It also validates client and
// stand-in by the OpenAPI document. It has tests only, and README.md states how to run
// them; package suite is for whoever writes another stand-in.
package contract
