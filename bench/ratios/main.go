// Command ratios reads the output of benchmarks that ran several times in
// alternation, and prints the ratios of time, memory and allocations of the client
// to the floor, or of other clients to this one. It computes the ratio of each
// pair of neighbouring runs, and prints the median.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	all, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	release := ""
	if len(os.Args) > 1 {
		release = os.Args[1]
	}
	if len(all["Peers/bare/memory/"+own]) > 0 {
		printPeers(os.Stdout, all)
		return
	}
	print(os.Stdout, all, release)
}

// samples has the values of all benchmarks by name and unit, in the order of the
// runs.
type samples map[string]map[string][]float64

// read parses lines such as "BenchmarkX/client-2  100  17 ns/op  3 allocs/op".
func read(r io.Reader) (samples, error) {
	all := samples{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if i := strings.LastIndex(name, "-"); i > 0 {
			name = name[:i] // GOMAXPROCS
		}
		if all[name] == nil {
			all[name] = map[string][]float64{}
		}
		for i := 2; i+1 < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", lines.Text(), err)
			}
			all[name][words[i+1]] = append(all[name][words[i+1]], value)
		}
	}
	return all, lines.Err()
}

func print(w io.Writer, all samples, release string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "benchmark\tclient\tfloor\ttime\tprocessor\tbytes\tallocs\tgoal, at most\t")
	for _, c := range comparisons {
		ours, floor := all[c.ours], all[c.floor]
		if len(ours["ns/op"]) == 0 {
			continue
		}
		fmt.Fprintf(table, "%s\t%.4g\t", c.name, median(ours["ns/op"]))
		if len(floor["ns/op"]) == 0 {
			fmt.Fprintf(table, "\t\t\t\t%g\t%s\t\n", median(ours["allocs/op"]), c.goal(release))
			continue
		}
		fmt.Fprintf(table, "%.4g\t", median(floor["ns/op"]))
		for _, unit := range []string{"ns/op", "cpu-ns/op", "B/op", "allocs/op"} {
			fmt.Fprintf(table, "%s\t", ratio(ours[unit], floor[unit], c.times))
		}
		fmt.Fprintf(table, "%s\t\n", c.goal(release))
	}
	table.Flush()
}

// ratio returns the median of the ratios of pairs, of which the first does a
// multiple of the work of the second.
func ratio(ours, floor []float64, times float64) string {
	ratios := ratiosOf(ours, floor, times)
	if len(ratios) == 0 {
		return ""
	}
	return strconv.FormatFloat(median(ratios), 'f', 2, 64)
}

func ratiosOf(ours, floor []float64, times float64) (ratios []float64) {
	for i := range min(len(ours), len(floor)) {
		if floor[i] > 0 {
			ratios = append(ratios, ours[i]/floor[i]/times)
		}
	}
	return ratios
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
