// Package order proves, from outside, that a merchant who follows the outcomes of its calls has at
// most one invoice for each order, and loses none, in random schedules of faults. It has tests
// only.
package order
