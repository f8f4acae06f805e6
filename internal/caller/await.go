package caller

import (
	"context"
	"sync/atomic"
	"time"
)

// Grace is how much longer than its bound code of a caller's may take before nobody waits for it
// any more.
const Grace = 500 * time.Millisecond

// A Job is what may outlive those who wait for it.
type Job interface {
	Run()
	Drop() // is called when Run has returned and nobody waits for it any more
}

// A Worker runs jobs, one after another, in goroutines of their own. Make it with [NewWorker].
type Worker struct {
	done     chan struct{} // has room for one
	ended    End           // of the job that has run last
	resolved atomic.Bool   // by the job, which has ended, or by the caller, who has left
}

// NewWorker returns a worker.
func NewWorker() *Worker { return &Worker{done: make(chan struct{}, 1)} }

// Await runs a job and waits for it, at most until grace after the end of a context. It returns
// how the job has ended, or nil if nobody waits for it any more: a late panic is dropped, and no
// job may follow.
func (w *Worker) Await(ctx context.Context, grace time.Duration, j Job) *End {
	w.resolved.Store(false)
	w.ended = End{}
	go w.run(j)
	select {
	case <-w.done:
		return &w.ended
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-w.done:
		return &w.ended
	case <-timer.C:
	}
	if w.resolved.CompareAndSwap(false, true) {
		return nil
	}
	<-w.done
	return &w.ended
}

func (w *Worker) run(j Job) {
	defer func() {
		w.ended.Catch(recover())
		if w.resolved.CompareAndSwap(false, true) {
			w.done <- struct{}{}
		} else if w.ended.Returned {
			defer func() { _ = recover() }()
			j.Drop()
		}
	}()
	j.Run()
	w.ended.Returned = true
}

// Await runs a function of a caller's in a goroutine of its own and waits for it, at most until
// [Grace] after the end of a context, or after a time, whatever the context does. How the function
// ends is passed on. If nobody waits for it any more, its result is given to drop, which may be nil.
func Await[T any](ctx context.Context, most time.Duration, run func() T, drop func(T)) (result T, finished bool) {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(most, cancel).Stop() // the parent's deadline may have passed without its end
	f := &function[T]{run: run, drop: drop}
	ended := NewWorker().Await(bounded, Grace, f)
	if ended == nil {
		return result, false
	}
	ended.Pass()
	return f.result, true
}

// A function is a [Job] with a result.
type function[T any] struct {
	run    func() T
	drop   func(T)
	result T
}

// Run implements [Job].
func (f *function[T]) Run() { f.result = f.run() }

// Drop implements [Job].
func (f *function[T]) Drop() {
	if f.drop != nil {
		f.drop(f.result)
	}
}
