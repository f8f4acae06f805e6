package gateway

import (
	"container/heap"
	"context"
	"time"
)

const (
	// crowdPolls is how many polls of a crowd are under way at a time.
	crowdPolls = 8

	// crowdShare is how many polls of a crowd begin within a MinInterval.
	crowdShare = 100
)

// A crowd is many pollers that take turns: the one that has been due for the
// longest is next.
type crowd struct {
	due     schedule
	polled  chan polled
	running int
	pace    time.Duration // between the beginnings of two polls
	next    time.Time     // no poll begins earlier
}

// polled is what came of a poll of one of the crowd.
type polled struct {
	by      *poller
	changed bool
	err     error

	returned bool // it neither panicked nor ended its goroutine
	panicked any
}

// rethrow panics where somebody can recover from it.
func (p polled) rethrow() {
	switch {
	case p.returned:
	case p.panicked == nil:
		panic("gateway: a poll ended its goroutine")
	default:
		panic(p.panicked)
	}
}

func newCrowd(c *Client, ids []string, w WaitOptions) *crowd {
	w = w.withDefaults()
	now := time.Now()
	all := &crowd{polled: make(chan polled, crowdPolls), pace: w.MinInterval / crowdShare, next: now}
	for _, id := range ids {
		p := &poller{client: c, options: w, progress: WaitError{WithdrawRequestID: id}}
		all.due = append(all.due, turn{p, now})
	}
	return all
}

// An ending is how the wait for one of the crowd ended.
type ending struct {
	seen *Withdrawal
	err  error
}

// over reports whether nobody is left.
func (all *crowd) over() bool { return len(all.due) == 0 && all.running == 0 }

// step does what is next: it begins the poll that is due, or waits until one is
// due or comes back. The ending is nil if nobody's wait has ended with that.
func (all *crowd) step(ctx context.Context) *ending {
	if ctx.Err() != nil {
		return all.dismiss(ctx)
	}
	var begin <-chan time.Time
	if len(all.due) > 0 && all.running < crowdPolls {
		timer := time.NewTimer(time.Until(later(all.next, all.due[0].at)))
		defer timer.Stop()
		begin = timer.C
	}
	select {
	case <-begin:
		all.begin(ctx)
		return nil
	case p := <-all.polled:
		return all.settle(p)
	case <-ctx.Done():
		return all.dismiss(ctx)
	}
}

func (all *crowd) begin(ctx context.Context) {
	p := heap.Pop(&all.due).(turn).of
	all.next = time.Now().Add(all.pace)
	all.running++
	go func() {
		came := polled{by: p}
		defer func() {
			came.panicked = recover()
			all.polled <- came
		}()
		came.changed, came.err = p.poll(ctx)
		came.returned = true
	}()
}

// settle ends the wait of the one that came back, or gives it its next turn.
// What the service asks to wait, all wait.
func (all *crowd) settle(p polled) *ending {
	all.running--
	p.rethrow()
	seen := p.by.progress.Last
	switch {
	case p.err != nil:
		return &ending{nil, p.err}
	case p.changed && seen.Status.Terminal():
		seen, err := seen.verdict()
		return &ending{seen, err}
	}
	now := time.Now()
	all.next = later(all.next, now.Add(p.by.asked))
	heap.Push(&all.due, turn{p.by, now.Add(p.by.pause())})
	return nil
}

// dismiss ends the wait of one of those that are left.
func (all *crowd) dismiss(ctx context.Context) *ending {
	if len(all.due) == 0 {
		return all.settle(<-all.polled)
	}
	p := heap.Pop(&all.due).(turn).of
	return &ending{nil, p.end(ended(ctx, p.client.ring.keys()))}
}

// wait returns when no poll is under way any more.
func (all *crowd) wait() {
	for ; all.running > 0; all.running-- {
		<-all.polled
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A turn is when a poller is due.
type turn struct {
	of *poller
	at time.Time
}

// A schedule is a heap of turns, the earliest first.
type schedule []turn

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].at.Before(s[j].at) }
func (s schedule) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(t any)        { *s = append(*s, t.(turn)) }

func (s *schedule) Pop() any {
	last := len(*s) - 1
	t := (*s)[last]
	*s = (*s)[:last]
	return t
}
