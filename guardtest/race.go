package guardtest

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cryptogw/gateway"
)

// Variables of a process that is one of a race.
const (
	asWorker  = "GUARDTEST_STORE" // the store
	firstID   = "GUARDTEST_FIRST" // the order that it begins with
	killCount = "GUARDTEST_KILLS" // how many are killed
)

const (
	workers      = 3 // processes at once
	defaultKills = 20
)

// prefix begins a line in which a process reports: "sent 17" before it sends an order, and
// "nothing 17" when it is sure that this made no invoice.
const prefix = "guardtest: "

// work is a process of the race: it sends one order after the other, as all others do, until it is killed.
func work(t *testing.T, g Guard) {
	guard, err := g.Reopen(os.Getenv(asWorker))
	if err != nil {
		t.Fatal(err)
	}
	first, _ := strconv.Atoi(os.Getenv(firstID))
	for n := first; ; n++ {
		o := orderOf(fmt.Sprint(n))
		lease, err := guard.Begin(context.Background(), o)
		if err != nil || lease.State != gateway.OrderFree {
			continue // a guard may fail, for example because the store is busy; then nothing is sent
		}
		fmt.Println(prefix + "sent " + o.Request.OrderID)
		o.Attempt = lease.Attempt
		r := gateway.OrderRecord{Request: o.Request}
		switch rand.IntN(4) { // #nosec G404 -- what becomes of it does not matter
		case 0:
			fmt.Println(prefix + "nothing " + o.Request.OrderID)
			r.Outcome = rejected
		case 1:
		default:
			r.Outcome, r.Invoice = success, []byte(invoice)
		}
		_, _ = guard.End(context.Background(), o, r) // an error makes it unknown
	}
}

// A sendings is what was sent of an order.
type sendings struct{ sent, nothing int }

// race kills processes at random places, and starts others, until there were enough.
func race(s *store) {
	kills, _ := strconv.Atoi(cmp.Or(os.Getenv(killCount), strconv.Itoa(defaultKills)))
	r := &racing{store: s, orders: map[string]sendings{}}
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for range (kills + i) / workers {
				if err := r.process(); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	s.expire()
	g := s.another()
	for id, of := range r.orders {
		state, _ := s.look(g, orderOf(id))
		if left := of.sent - of.nothing; left > 1 {
			s.Errorf("order %s: %d were sent that may have made an invoice", id, left)
		} else if left == 1 && state == gateway.OrderFree {
			s.Errorf("order %s was sent, and is forgotten", id)
		}
	}
	s.Logf("%d processes were killed, %d orders sent", kills, len(r.orders))
	if len(r.orders) < kills {
		s.Errorf("only %d orders were sent by %d processes", len(r.orders), kills)
	}
}

type racing struct {
	*store
	mu     sync.Mutex
	orders map[string]sendings
	last   int // the highest order that was sent
}

// process runs a process until it is killed behind one of its next lines.
func (r *racing) process() error {
	r.mu.Lock()
	first := max(0, r.last-10)
	r.mu.Unlock()
	name := "^" + strings.Join(strings.Split(regexp.QuoteMeta(topName(r.Name())), "/"), "$/^") + "$"
	cmd := exec.Command(os.Args[0], "-test.run="+name, "-test.timeout=10m", "-test.count=1") // #nosec G204 G702 -- this program
	cmd.Env = append(os.Environ(), asWorker+"="+r.guard.Store(r.first), firstID+"="+strconv.Itoa(first))
	lines, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	left, told := 1+rand.IntN(12), "" // #nosec G404 -- the place does not matter
	for scan := bufio.NewScanner(lines); scan.Scan(); {
		text, isOurs := strings.CutPrefix(scan.Text(), prefix)
		if !isOurs {
			told += scan.Text() + "\n"
			continue
		}
		if r.note(text); left == 0 {
			_ = cmd.Process.Kill() // what it has written is read to its end
		}
		left--
	}
	_, _ = io.Copy(io.Discard, lines)
	_ = cmd.Wait()
	if left > 0 {
		return fmt.Errorf("a process has ended by itself:\n%s", told)
	}
	return nil
}

// topName is the name of the test that called Run: the last part names the rule.
func topName(name string) string { return name[:strings.LastIndex(name, "/")] }

func (r *racing) note(line string) {
	what, id, _ := strings.Cut(line, " ")
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.orders[id]
	if what == "nothing" {
		of.nothing++
	} else {
		of.sent++
	}
	r.orders[id] = of
	if n, err := strconv.Atoi(id); err == nil {
		r.last = max(r.last, n)
	}
}
