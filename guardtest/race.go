package guardtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
)

const (
	workers = 3 // processes at once

	// Variables of a process that is one of a race.
	asWorker  = "GUARDTEST_STORE" // the store
	firstID   = "GUARDTEST_FIRST" // the order that it begins with
	killCount = "GUARDTEST_KILLS" // how many are killed
)

// upTo is a random time of at most some microseconds.
func upTo(most int) time.Duration { return time.Duration(rand.IntN(most)) * time.Microsecond } // #nosec G404

// work is a process of the race. It sends one order after the other, as all others do, until it kills itself. It writes
// "sent 17" before it sends an order, and "nothing 17" once it is sure that the order has no invoice from it.
func work(t *testing.T, g Guard) {
	guard, err := g.Reopen(os.Getenv(asWorker))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	first, _ := strconv.Atoi(os.Getenv(firstID))
	left := rand.IntN(8) // #nosec G404
	for n := first; ; n++ {
		o := orderOf(fmt.Sprint(n))
		ctx, cancel := brief()
		lease, err := guard.Begin(ctx, o)
		if cancel(); err != nil || lease.State != gateway.OrderFree {
			continue // a guard may fail, for example because the store is busy; then nothing is sent
		}
		fmt.Println("sent", n)
		if left--; left < 0 {
			time.AfterFunc(upTo(3000), func() { _ = self.Kill() })
		}
		o.Attempt = lease.Attempt
		outcome := [...]string{"rejected", "unknown", "success", "success"}[rand.IntN(4)] // #nosec G404
		if outcome == "rejected" {
			fmt.Println("nothing", n)
		}
		for range 3 { // after which it is unknown
			ctx, cancel := brief()
			_, err := guard.End(ctx, o, recordOf(o, outcome, o.Request.OrderID))
			if cancel(); err == nil {
				break
			}
		}
	}
}

// brief returns a context that in one of four cases ends within milliseconds, by a deadline or because its caller goes.
func brief() (context.Context, context.CancelFunc) {
	kind := rand.IntN(8) // #nosec G404
	if kind == 0 {
		return context.WithTimeout(context.Background(), upTo(3000))
	}
	ctx, cancel := context.WithCancel(context.Background())
	if kind == 1 {
		time.AfterFunc(upTo(3000), cancel)
	}
	return ctx, cancel
}

// race has processes kill themselves at random places, and starts others, until there were enough.
func race(s *store) {
	s.expire()
	g := s.another()
	kills, _ := strconv.Atoi(cmp.Or(os.Getenv(killCount), "10"))
	var mu sync.Mutex
	sent, last := map[int]int{}, 0 // how often an order was sent and may have made an invoice, and the highest one
	atOnce(workers, func(i int) bool {
		for range (kills + i) / workers {
			mu.Lock()
			first := max(0, last-10)
			mu.Unlock()
			told, err := s.process(first)
			if err != nil {
				s.Error(err)
				return false
			}
			mu.Lock()
			for line := range strings.Lines(told) {
				what, n := "", 0
				_, _ = fmt.Sscan(line, &what, &n)
				switch what {
				case "sent":
					sent[n]++
				case "nothing":
					sent[n]--
				}
				last = max(last, n)
			}
			mu.Unlock()
		}
		return true
	})
	s.expire()
	unsent := 0
	for n := range last + 1 {
		count, wasSent := sent[n]
		state, _ := s.look(g, orderOf(fmt.Sprint(n)))
		switch {
		case count > 1:
			s.Errorf("order %d: %d were sent that may have made an invoice", n, count)
		case count == 1 && state == gateway.OrderFree:
			s.Errorf("order %d was sent, and is forgotten", n)
		case !wasSent && state != gateway.OrderFree:
			unsent++ // its process was killed in Begin, or did not get the answer
		}
	}
	s.Logf("%d processes were killed; %d orders were sent; %d are unknown although they were not sent", kills, len(sent), unsent)
	if len(sent) < kills {
		s.Errorf("only %d orders were sent by %d processes", len(sent), kills)
	}
}

// process runs a process until it kills itself, and returns what it has written.
func (s *store) process(first int) (told string, err error) {
	caller := s.Name()[:strings.LastIndex(s.Name(), "/")] // of Run: the last part names the rule
	name := "^" + strings.ReplaceAll(regexp.QuoteMeta(caller), "/", "$/^") + "$"
	cmd := exec.Command(os.Args[0], "-test.run="+name, "-test.timeout=1m", "-test.count=1") // #nosec G204 G702 -- this program
	cmd.Env = append(os.Environ(), asWorker+"="+s.guard.Store(s.first), firstID+"="+strconv.Itoa(first))
	text, err := cmd.CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.Exited() {
		return "", fmt.Errorf("a process has ended by itself: %w\n%s", err, text)
	}
	return string(text), nil
}
