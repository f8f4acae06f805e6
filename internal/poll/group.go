package poll

import (
	"container/heap"
	"context"
	"time"

	"github.com/cryptogw/gateway/internal/caller"
)

const (
	maxRunning     = 8   // polls of a group at a time
	maxPerInterval = 100 // polls of a group that begin within a Min
)

// A Task is polled until it is done. Its methods are never called concurrently.
type Task[R any] interface {
	// Poll polls once. The result counts only when the task is done; retryAfter is
	// how long the service asks to wait, 0 for nothing.
	Poll(ctx context.Context) (result R, done bool, retryAfter time.Duration)

	// Cancel returns the result of a task that is not done when ctx has ended.
	Cancel(ctx context.Context) R
}

// A Group polls many tasks: next is the one that has been due for the longest. It
// is used by one goroutine.
type Group[R any] struct {
	intervals Intervals
	due       schedule[R]
	polled    chan polled[R]
	running   int
	next      time.Time // no poll begins earlier

	more    <-chan string // names of further tasks; nil when there are none
	newTask func(name string) Task[R]
}

// NewGroup returns a group of tasks that are due at once.
func NewGroup[R any](tasks []Task[R], i Intervals) *Group[R] {
	now := time.Now()
	g := &Group[R]{intervals: i, polled: make(chan polled[R], maxRunning), next: now}
	for _, t := range tasks {
		g.due = append(g.due, &scheduledPoll[R]{t, NewPacer(i), now})
	}
	return g
}

// AddFrom makes Next add the tasks that newTask returns for what it receives from more,
// until that is closed; a nil task is ignored.
func (g *Group[R]) AddFrom(more <-chan string, newTask func(name string) Task[R]) {
	g.more, g.newTask = more, newTask
}

func (g *Group[R]) add(name string, open bool) {
	if !open {
		g.more = nil
	} else if t := g.newTask(name); t != nil {
		heap.Push(&g.due, &scheduledPoll[R]{t, NewPacer(g.intervals), time.Now()})
	}
}

// Next returns the result of the task that is done next. When ctx has ended it is
// that of a task that is cancelled. It returns false when no task is left and none can
// be added. A panic of a Poll, or the end of its goroutine, is passed on.
func (g *Group[R]) Next(ctx context.Context) (result R, ok bool) {
	for len(g.due) > 0 || g.running > 0 || g.more != nil {
		if result, ok = g.step(ctx); ok {
			return result, true
		}
	}
	return result, false
}

// Wait returns when no poll is running any more, which an end of the context of
// Next hastens. The results are dropped.
func (g *Group[R]) Wait() {
	for ; g.running > 0; g.running-- {
		<-g.polled
	}
}

// step begins the poll that is due, or waits until one is due or has ended. It
// reports whether a task is done with that.
func (g *Group[R]) step(ctx context.Context) (result R, done bool) {
	if ctx.Err() != nil {
		return g.cancelNext(ctx)
	}
	var begin <-chan time.Time
	if len(g.due) > 0 && g.running < maxRunning {
		timer := time.NewTimer(time.Until(later(g.next, g.due[0].at)))
		defer timer.Stop()
		begin = timer.C
	}
	select {
	case <-begin:
		g.begin(ctx)
		return result, false
	case p := <-g.polled:
		return g.handleResult(p)
	case name, open := <-g.more:
		g.add(name, open)
		return result, false
	case <-ctx.Done():
		return g.cancelNext(ctx)
	}
}

// polled is what came of one poll.
type polled[R any] struct {
	by         *scheduledPoll[R]
	result     R
	done       bool
	retryAfter time.Duration

	ended caller.End
}

func (g *Group[R]) begin(ctx context.Context) {
	s := heap.Pop(&g.due).(*scheduledPoll[R])
	g.next = time.Now().Add(g.intervals.Min / maxPerInterval)
	g.running++
	go func() {
		p := polled[R]{by: s}
		defer func() {
			p.ended.Catch(recover())
			g.polled <- p
		}()
		p.result, p.done, p.retryAfter = s.task.Poll(ctx)
		p.ended.Returned = true
	}()
}

// handleResult schedules the next poll of a task that is not done. What the service
// asks to wait, every task waits.
func (g *Group[R]) handleResult(p polled[R]) (result R, done bool) {
	g.running--
	p.ended.Pass()
	if p.done {
		return p.result, true
	}
	now := time.Now()
	g.next = later(g.next, now.Add(p.retryAfter))
	p.by.at = now.Add(p.by.pacer.Next(p.retryAfter))
	heap.Push(&g.due, p.by)
	return result, false
}

// cancelNext ends one of the tasks that are left.
func (g *Group[R]) cancelNext(ctx context.Context) (result R, done bool) {
	g.more = nil
	switch {
	case len(g.due) == 0 && g.running == 0:
		return result, false
	case len(g.due) == 0:
		return g.handleResult(<-g.polled)
	}
	return heap.Pop(&g.due).(*scheduledPoll[R]).task.Cancel(ctx), true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A scheduledPoll is when a task is due.
type scheduledPoll[R any] struct {
	task  Task[R]
	pacer Pacer
	at    time.Time
}

// A schedule is a heap, the earliest first.
type schedule[R any] []*scheduledPoll[R]

func (s schedule[R]) Len() int           { return len(s) }
func (s schedule[R]) Less(i, j int) bool { return s[i].at.Before(s[j].at) }
func (s schedule[R]) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *schedule[R]) Push(p any)        { *s = append(*s, p.(*scheduledPoll[R])) }

func (s *schedule[R]) Pop() any {
	last := len(*s) - 1
	p := (*s)[last]
	*s = (*s)[:last]
	return p
}
