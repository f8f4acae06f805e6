package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// printPeers prints the ratios of other clients to this one, the fastest first.
func printPeers(w io.Writer, all samples) {
	const memory, loopback, own = "Peers/memory/", "Peers/loopback/", "gateway"
	var names []string
	for name := range maps.Keys(all) {
		if peer, ok := strings.CutPrefix(name, memory); ok {
			names = append(names, peer)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return int(median(all[memory+a]["cpu-ns/op"]) - median(all[memory+b]["cpu-ns/op"]))
	})
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "in memory:\ttime\tprocessor\tbytes\tallocs\tloopback:\ttime\tprocessor\tbytes\tallocs\t")
	for _, name := range names {
		fmt.Fprintf(table, "%s\t", name)
		for _, via := range []string{memory, loopback} {
			if via == loopback {
				fmt.Fprint(table, "\t")
			}
			for _, unit := range []string{"ns/op", "cpu-ns/op", "B/op", "allocs/op"} {
				fmt.Fprintf(table, "%s\t", ratio(all[via+name][unit], all[via+own][unit], 1))
			}
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}
