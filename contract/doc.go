// Package contract proves, from outside, the promise that a create-invoice
// call puts at most one invoice on the wire and tells the truth about it.
// It has tests only; README.md says how to run them.
package contract
