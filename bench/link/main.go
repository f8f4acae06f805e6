// Command link measures what a call takes over a slow link: round trips, which are
// counted, time, bytes and handshakes, of this client and of net/http by hand, over both
// versions of HTTP, with and without lost connections. It prints a table, and draws the
// part of it for 100 ms.
package main

import (
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/cryptogw/gateway/bench/trust"
)

// clients is how many clients make the calls of a row, each over a link of its own.
const clients = 5

// A row is one of the table.
type row struct {
	roundTrip time.Duration
	lossEvery int // flights of a client after which a connection is lost; 0 for never
	http2     bool
	subject   subject
	calls     int // of each client

	mu            sync.Mutex
	flights, lost int
	times         []time.Duration // of the calls that succeeded
	failed        int
	sum           counters
	full, resumed float64 // handshakes of a call
	err           error
}

func main() {
	calls := flag.Int("calls", 20, "how many calls each of 5 clients makes")
	svg := flag.String("svg", "", "the file to draw")
	flag.Parse()
	forget, err := trust.PEM(newServer(false).certificate()) // all have the certificate of httptest
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rows := table(*calls)
	measure(rows)
	forget()
	for _, r := range rows {
		if r.err != nil {
			fmt.Fprintln(os.Stderr, r.subject.name, r.err)
			os.Exit(1)
		}
	}
	print(os.Stdout, rows)
	if *svg != "" {
		if err := os.WriteFile(*svg, []byte(drawing(rows)), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func table(calls int) (rows []*row) {
	for _, roundTrip := range []time.Duration{100 * time.Millisecond, 20 * time.Millisecond, 0} {
		for _, loss := range []int{0, 100} {
			for _, http2 := range []bool{false, true} {
				for _, s := range subjects() {
					r := &row{roundTrip: roundTrip, lossEvery: loss, http2: http2, subject: s, calls: calls}
					if s.waits && http2 {
						r.calls = max(1, calls/4)
					}
					rows = append(rows, r)
				}
			}
		}
	}
	return rows
}

// measure measures the rows with a delay, which mostly wait, a few at a time, and then
// those without one after the other.
func measure(rows []*row) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 6)
	for _, r := range rows {
		if r.roundTrip == 0 {
			group.Wait()
		}
		slots <- struct{}{}
		group.Go(func() { r.err = r.measure(); <-slots })
	}
	group.Wait()
}

// measure makes the calls of a row: each client one that is not counted, to be warm, and
// then the others.
func (r *row) measure() error {
	s := newServer(r.http2)
	defer s.Close()
	all := make([]*caller, clients)
	if err := each(func(i int) (err error) { all[i], err = r.newCaller(s); return err }); err != nil {
		return err
	}
	full, resumed, n := s.full.Load(), s.resumed.Load(), float64(clients*r.calls)
	err := each(func(i int) error { return all[i].make() })
	r.full, r.resumed = float64(s.full.Load()-full)/n, float64(s.resumed.Load()-resumed)/n
	return err
}

// each does something with each client at the same time.
func each(do func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, clients)
	for i := range errs {
		group.Go(func() { errs[i] = do(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// A caller makes the calls of one client.
type caller struct {
	*row
	link        *link
	ready, call func(n int) error
}

func (r *row) newCaller(s *server) (*caller, error) {
	l, err := newLink(s.Listener.Addr().String(), r.roundTrip, r.loses)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	ready, call := r.subject.new("https://"+l.listener.Addr().String(), roots)
	if err := call(0); err != nil && r.lossEvery == 0 {
		return nil, err
	}
	return &caller{r, l, ready, call}, nil
}

func (c *caller) make() error {
	defer c.link.listener.Close()
	for n := range c.calls {
		if err := c.ready(n); err != nil && c.lossEvery == 0 {
			return err
		}
		time.Sleep(c.roundTrip + 5*time.Millisecond) // until what the peer still sends has arrived
		if c.subject.waits && c.http2 {
			time.Sleep(idle)
		}
		before, begun := c.link.counts(), time.Now()
		err := c.call(n + 1)
		c.add(time.Since(begun), before, c.link.counts(), err)
		if err != nil && c.lossEvery == 0 {
			return err
		}
	}
	return nil
}

func (r *row) add(took time.Duration, before, after counters, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.roundTrips += after.roundTrips - before.roundTrips
	r.sum.bytes += after.bytes - before.bytes
	if err != nil {
		r.failed++
		return
	}
	r.times = append(r.times, took)
}

// loses reports whether the connection of this flight is lost.
func (r *row) loses() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flights++
	lost := r.lossEvery > 0 && r.flights%r.lossEvery == 0
	if lost {
		r.lost++
	}
	return lost
}

// ms is the time of the fastest, in tenths of the calls: 0 for the least, 5 for the median.
func (r *row) ms(tenths int) float64 {
	slices.Sort(r.times)
	return r.times[len(r.times)*tenths/10].Seconds() * 1000
}

func (r *row) proto() string {
	if r.http2 {
		return "HTTP/2"
	}
	return "HTTP/1.1"
}

func (r *row) trips() float64 { return float64(r.sum.roundTrips) / float64(clients*r.calls) }

func print(w io.Writer, rows []*row) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "link\tlost\tprotocol\tcall\tround trips\tleast ms\tmedian\tbytes\thandshakes\tresumed\tfailed")
	for _, r := range rows {
		n := clients * r.calls
		trips := "" // without a delay, packets of one flight may cross
		if r.roundTrip > 0 {
			trips = fmt.Sprintf("%.2f", r.trips())
		}
		fmt.Fprintf(table, "%v\t%d\t%s\t%s\t%s\t%.1f\t%.1f\t%d\t%.2f\t%.2f\t%d of %d\n", r.roundTrip, r.lost, r.proto(), r.subject.name,
			trips, r.ms(0), r.ms(5), r.sum.bytes/n, r.full, r.resumed, r.failed, n)
	}
	table.Flush()
}

// drawing draws the least times over a link of 100 ms without losses.
func drawing(rows []*row) string {
	const left, height, scale = 250, 24, 1.1
	var b strings.Builder
	y := 40
	for _, r := range rows {
		if r.roundTrip != 100*time.Millisecond || r.lossEvery > 0 {
			continue
		}
		color := "#8a94a6"
		if !strings.HasPrefix(r.subject.name, "net/http") {
			color = "#2f6fde"
		}
		width := r.ms(0) * scale
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s, %s</text>\n", left-8, y+15, r.subject.name, r.proto())
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"%d\" fill=\"%s\"/>\n", left, y, width, height-6, color)
		fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%d\">%.0f ms, %.1f round trips</text>\n", left+width+8, y+15, r.ms(0), r.trips())
		y += height
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 %d" font-family="sans-serif" font-size="13" fill="#24292f">
<rect width="780" height="%d" fill="#ffffff"/>
<text x="16" y="24" font-weight="bold">One call over a link of 100 ms</text>
%s</svg>
`, y+12, y+12, b.String())
}
