package guardtest

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
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
	defaultKills = "10"
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
		fmt.Println(prefix+"sent", n)
		o.Attempt = lease.Attempt
		r := gateway.OrderRecord{Request: o.Request}
		switch rand.IntN(4) { // #nosec G404 -- what becomes of it does not matter
		case 0:
			fmt.Println(prefix+"nothing", n)
			r.Outcome = rejected
		case 1:
		default:
			r.Outcome, r.Invoice = success, []byte(invoiceOf(o.Request.OrderID))
		}
		_, _ = guard.End(context.Background(), o, r) // an error makes it unknown
	}
}

// A racing is the orders that the processes have sent.
type racing struct {
	*store
	mu   sync.Mutex
	sent map[int]int // how often an order was sent and may have made an invoice
	last int         // the highest order
}

// race kills processes at random places, and starts others, until there were enough.
func race(s *store) {
	s.expire()
	g := s.another()
	kills, _ := strconv.Atoi(cmp.Or(os.Getenv(killCount), defaultKills))
	r := &racing{store: s, sent: map[int]int{}}
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
	for n, count := range r.sent {
		state, _ := s.look(g, orderOf(fmt.Sprint(n)))
		if count > 1 {
			s.Errorf("order %d: %d were sent that may have made an invoice", n, count)
		} else if count == 1 && state == gateway.OrderFree {
			s.Errorf("order %d was sent, and is forgotten", n)
		}
	}
	s.Logf("%d processes were killed, %d orders sent", kills, len(r.sent))
	if len(r.sent) < kills {
		s.Errorf("only %d orders were sent by %d processes", len(r.sent), kills)
	}
}

// process runs a process until it is killed behind one of its next lines.
func (r *racing) process() error {
	r.mu.Lock()
	first := max(0, r.last-10)
	r.mu.Unlock()
	caller := r.Name()[:strings.LastIndex(r.Name(), "/")] // of Run: the last part names the rule
	name := "^" + strings.ReplaceAll(regexp.QuoteMeta(caller), "/", "$/^") + "$"
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
	_ = cmd.Wait()
	if left > 0 {
		return fmt.Errorf("a process has ended by itself:\n%s", told)
	}
	return nil
}

func (r *racing) note(line string) {
	what, id, _ := strings.Cut(line, " ")
	n, _ := strconv.Atoi(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent[n]++; what == "nothing" {
		r.sent[n] -= 2
	}
	r.last = max(r.last, n)
}
