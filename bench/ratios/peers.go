package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// own is the client that the others are compared with.
const own = "gateway"

// columns are those of a table of clients: how a call is made, and what of it.
var columns = []struct{ via, unit, title string }{
	{"memory", "ns/op", "in memory: time"},
	{"memory", "cpu-ns/op", "processor"},
	{"memory", "B/op", "bytes"},
	{"memory", "allocs/op", "allocs"},
	{"loopback", "ns/op", "loopback: time"},
	{"loopback", "cpu-ns/op", "processor"},
	{"http2", "cpu-ns/op", "HTTP/2, 16 callers: processor"},
}

// printPeers prints, for each setting, the ratios of other clients to this one with their
// spread, the fastest first, and which of them another run may not repeat.
func printPeers(w io.Writer, all samples) {
	var unsure []string
	for _, setting := range []string{"bare", "used"} {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(table, setting, "\t")
		for _, c := range columns {
			fmt.Fprint(table, c.title, "\t")
		}
		fmt.Fprintln(table)
		for _, name := range peers(all, setting) {
			fmt.Fprint(table, name, "\t")
			for _, c := range columns {
				ratios := ratiosOf(all["Peers/"+setting+"/"+c.via+"/"+name][c.unit], all["Peers/"+setting+"/"+c.via+"/"+own][c.unit], 1)
				fmt.Fprint(table, withSpread(ratios), "\t")
				if isUnsure(ratios) {
					unsure = append(unsure, fmt.Sprintf("%s, %s, %s, %s", setting, name, c.via, c.unit))
				}
			}
			fmt.Fprintln(table)
		}
		table.Flush()
	}
	if unsure != nil {
		fmt.Fprintf(w, "the halves of these rounds differ by more than 5 %%: %s\n", strings.Join(unsure, "; "))
	}
}

// peers returns the clients that were measured with a setting, the fastest first.
func peers(all samples, setting string) (names []string) {
	prefix := "Peers/" + setting + "/memory/"
	for name := range all {
		if peer, ok := strings.CutPrefix(name, prefix); ok {
			names = append(names, peer)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return int(median(all[prefix+a]["cpu-ns/op"]) - median(all[prefix+b]["cpu-ns/op"]))
	})
	return names
}

// withSpread returns the median, and half of what the middle half of the values spans.
func withSpread(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(values))
	quarter := len(sorted) / 4
	return fmt.Sprintf("%.2f±%.2f", median(sorted), (sorted[len(sorted)-1-quarter]-sorted[quarter])/2)
}

// isUnsure reports whether the medians of every other round and of the rest differ by more
// than 5 %.
func isUnsure(values []float64) bool {
	if len(values) < 2 {
		return false
	}
	var halves [2][]float64
	for i, value := range values {
		halves[i%2] = append(halves[i%2], value)
	}
	one, other := median(halves[0]), median(halves[1])
	return math.Abs(one-other) > 0.05*min(one, other)
}
