// Package year has a test that simulates a year of four merchants with the client and sqlguard, and
// compares what they know of each order with what is true. docs/year.md has its tables and the command that
// prints them.
package year
