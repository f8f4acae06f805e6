package main

import (
	"strings"
	"testing"
)

// The result is the median of the ratios of pairs of runs.
func TestPrint(t *testing.T) {
	all, err := read(strings.NewReader(`goos: linux
BenchmarkWithdrawal/client-2   100   300 ns/op   10 B/op   3 allocs/op
BenchmarkWithdrawal/floor-2    100   400 ns/op   40 B/op   4 allocs/op
BenchmarkWithdrawal/client-2   100   100 ns/op   10 B/op   3 allocs/op
BenchmarkWithdrawal/floor-2    100   400 ns/op   40 B/op   4 allocs/op
BenchmarkWithdrawal/client-2   100   900 ns/op   10 B/op   3 allocs/op
BenchmarkWithdrawal/floor-2    100   900 ns/op   40 B/op   4 allocs/op
`))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	print(&out, all, "go1.27.1")
	row := strings.Join(strings.Fields(strings.Split(out.String(), "\n")[1]), " ")
	if want := "a read 300 400 0.75 0.25 0.75 0.85, allocs 0.95"; row != want {
		t.Errorf("got  %s\nwant %s", row, want)
	}
}

func TestRead_refuses(t *testing.T) {
	if _, err := read(strings.NewReader("BenchmarkX-2 100 many ns/op")); err == nil {
		t.Error("a value that is not a number is accepted")
	}
}

func TestPrintPeers(t *testing.T) {
	all, err := read(strings.NewReader(`
BenchmarkPeers/memory/other-2    100  600 ns/op  500 cpu-ns/op  20 B/op  8 allocs/op
BenchmarkPeers/loopback/other-2  100  900 ns/op  900 cpu-ns/op  30 B/op  9 allocs/op
BenchmarkPeers/memory/gateway-2    100  300 ns/op  250 cpu-ns/op  10 B/op  4 allocs/op
BenchmarkPeers/loopback/gateway-2  100  600 ns/op  600 cpu-ns/op  30 B/op  6 allocs/op
`))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printPeers(&out, all)
	lines := strings.Split(out.String(), "\n")
	if got, want := strings.Join(strings.Fields(lines[2]), " "), "other 2.00 2.00 2.00 2.00 1.50 1.50 1.00 1.50"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.Contains(lines[1], "gateway") {
		t.Errorf("the first row is %s, want the fastest", lines[1])
	}
}
