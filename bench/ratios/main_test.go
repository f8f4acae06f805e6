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
	if want := "a read 300 400 0.75 0.25 0.75 0.95, allocs 0.95"; row != want {
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
BenchmarkPeers/bare/memory/other-2    100  600 ns/op  500 cpu-ns/op  20 B/op  8 allocs/op
BenchmarkPeers/bare/loopback/other-2  100  900 ns/op  900 cpu-ns/op  30 B/op  9 allocs/op
BenchmarkPeers/bare/http2/other-2     100  900 ns/op  800 cpu-ns/op  30 B/op  9 allocs/op
BenchmarkPeers/bare/memory/gateway-2    100  300 ns/op  250 cpu-ns/op  10 B/op  4 allocs/op
BenchmarkPeers/bare/loopback/gateway-2  100  600 ns/op  600 cpu-ns/op  30 B/op  6 allocs/op
BenchmarkPeers/bare/http2/gateway-2     100  900 ns/op  400 cpu-ns/op  30 B/op  9 allocs/op
BenchmarkPeers/bare/memory/other-2    100  624 ns/op  600 cpu-ns/op  20 B/op  8 allocs/op
BenchmarkPeers/bare/memory/gateway-2    100  300 ns/op  250 cpu-ns/op  10 B/op  4 allocs/op
`))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printPeers(&out, all)
	lines := strings.Split(out.String(), "\n")
	want := "other 2.04±0.04 2.20±0.20 2.00±0.00 2.00±0.00 1.50±0.00 1.50±0.00 2.00±0.00"
	if got := strings.Join(strings.Fields(lines[2]), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.Contains(lines[1], "gateway") {
		t.Errorf("the first row is %s, want the fastest", lines[1])
	}
	if want := "the halves of these rounds differ by more than 5 %: bare, other, memory, cpu-ns/op\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %s, want at the end %s", out.String(), want)
	}
}
