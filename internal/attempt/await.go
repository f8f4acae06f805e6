package attempt

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"
)

// grace is how much longer than its attempt an operation may take before its connection
// is closed or nobody waits for it any more.
const grace = 500 * time.Millisecond

// Await returns what read returns, which reads and closes the body of a response of a
// [Sender]. If read has not returned soon after the attempt has ended, the connection is
// closed if it is one of a [NewReadSender]; otherwise read goes on in a goroutine of its
// own, and Await returns the error that has ended the attempt.
func Await[T any](resp *http.Response, read func(*http.Response) T) (result T, err error) {
	a, ok := resp.Body.(*attempt)
	if !ok || a.heeds && resp.ProtoMajor == 1 {
		return read(resp), nil // over HTTP/1 net/http closes the connection, which ends a read
	}
	a.awaited = true
	defer a.end(nil)
	if a.conn != nil {
		defer a.closeIfHeld()()
		return read(resp), nil
	}
	r := &reading[T]{resp: *resp, read: read} // a copy: the caller may change resp when Await has returned
	if !a.await(r) {
		return result, a.cause()
	}
	return r.result, nil
}

// closeIfHeld closes the connection soon after the end of the attempt, unless the body has
// been read by then. Over HTTP/2 net/http confirms what it reads, and waits for that while
// the peer accepts nothing, whatever happens to the attempt.
func (a *attempt) closeIfHeld() (hasBeenRead func()) {
	returned := make(chan struct{})
	stop := context.AfterFunc(a, func() {
		select {
		case <-returned:
		case <-time.After(grace):
			_ = a.conn.Close()
		}
	})
	return func() {
		close(returned)
		stop()
	}
}

// A reading reads a response.
type reading[T any] struct {
	resp   http.Response
	read   func(*http.Response) T
	result T
}

func (r *reading[T]) run()  { r.result = r.read(&r.resp) }
func (r *reading[T]) late() {}

// HasEnded reports whether the attempt of a response of a [Sender] has ended.
func HasEnded(resp *http.Response) bool {
	a, ok := resp.Body.(*attempt)
	return ok && a.Err() != nil
}

// Discard reads a little of the body of a response, so that the connection can be used
// again, and closes it.
func Discard(resp *http.Response) {
	const most = 4 << 10
	_, _ = Await(resp, func(resp *http.Response) struct{} {
		_, _ = io.CopyN(io.Discard, resp.Body, most)
		_ = resp.Body.Close()
		return struct{}{}
	})
}

// A job is what may outlive its attempt.
type job interface {
	run()
	late() // is called when run has returned and nobody waits for it any more
}

// A worker runs jobs, one after another, in goroutines of their own.
type worker struct {
	done     chan struct{} // has room for one
	settled  atomic.Bool   // by the job, which has ended, or by the caller, who has left
	returned bool          // it neither panicked nor ended its goroutine
	panicked any
}

// await runs a job and waits for it, at most until grace after the end of the attempt. A
// panic or a Goexit is passed on to the caller; a late one is dropped. After a job that
// has not finished, none may follow.
func (a *attempt) await(j job) (finished bool) {
	if a.worker == nil {
		a.worker = &worker{done: make(chan struct{}, 1)}
	}
	w := a.worker
	w.settled.Store(false)
	w.returned, w.panicked = false, nil
	go w.run(j)
	select {
	case <-w.done:
		return a.finish()
	case <-a.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-w.done:
		return a.finish()
	case <-timer.C:
	}
	if w.settled.CompareAndSwap(false, true) {
		return false
	}
	<-w.done
	return a.finish()
}

func (w *worker) run(j job) {
	defer func() {
		w.panicked = recover()
		if w.settled.CompareAndSwap(false, true) {
			w.done <- struct{}{}
		} else if w.returned {
			defer func() { _ = recover() }()
			j.late()
		}
	}()
	j.run()
	w.returned = true
}

// finish passes the end of a job on to the goroutine that has waited for it.
func (a *attempt) finish() bool {
	w := a.worker
	if w.returned {
		return true
	}
	a.end(nil)
	if w.panicked != nil {
		panic(w.panicked)
	}
	runtime.Goexit()
	return false
}
