// Package wire proves, from outside, that a create-invoice call puts at most one invoice on the
// wire and reports its outcome truthfully, whatever happens to its connection and its response. It
// has tests only.
package wire
