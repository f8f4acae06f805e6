package attempt

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/cryptogw/gateway/internal/caller"
)

// grace is how much longer than its attempt a job may take before its connection
// is closed or nobody waits for it any more.
const grace = 500 * time.Millisecond

// A Response is the response of an attempt, which goes on until it is read.
type Response struct {
	*http.Response
	attempt *attempt
}

// Read returns what read returns, which reads and closes the body of a response. If read has
// not returned soon after the attempt has ended, the connection is closed if it is one of a
// [NewReadSender]; otherwise read goes on in a goroutine of its own, and Read returns the
// error that has ended the attempt.
func Read[T any](resp *Response, read func(*http.Response) T) (result T, err error) {
	a := resp.attempt
	if a.sender.honorsContext && resp.ProtoMajor == 1 {
		return read(resp.Response), nil // over HTTP/1 net/http closes the connection, which ends a read
	}
	a.awaited = true
	defer a.end(nil)
	if a.conn != nil {
		defer a.closeIfHeld()()
		return read(resp.Response), nil
	}
	r := &reading[T]{resp: resp.Response, read: read}
	if !a.await(r) {
		return result, a.cause()
	}
	return r.result, nil
}

// HasEnded reports whether the attempt has ended.
func (r *Response) HasEnded() bool { return r.attempt.Err() != nil }

// EndWithin ends the attempt after d, unless it ends before.
func (r *Response) EndWithin(d time.Duration) {
	if d < time.Until(r.attempt.deadline) {
		r.attempt.timer.Reset(d)
	}
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
	resp   *http.Response
	read   func(*http.Response) T
	result T
}

func (r *reading[T]) run()  { r.result = r.read(r.resp) }
func (r *reading[T]) drop() {}

// A job is what may outlive its attempt.
type job interface {
	run()
	drop() // is called when run has returned and nobody waits for it any more
}

// A worker runs jobs, one after another, in goroutines of their own.
type worker struct {
	done     chan struct{} // has room for one
	ended    caller.End    // of the job that has run last
	resolved atomic.Bool   // by the job, which has ended, or by the caller, who has left
}

// await runs a job and waits for it, at most until grace after the end of the attempt. A
// panic or a Goexit is passed on to the caller; a late one is dropped. After a job that
// has not finished, none may follow.
func (a *attempt) await(j job) (finished bool) {
	if a.worker == nil {
		a.worker = &worker{done: make(chan struct{}, 1)}
	}
	w := a.worker
	w.resolved.Store(false)
	w.ended = caller.End{}
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
	if w.resolved.CompareAndSwap(false, true) {
		return false
	}
	<-w.done
	return a.finish()
}

func (w *worker) run(j job) {
	defer func() {
		w.ended.Catch(recover())
		if w.resolved.CompareAndSwap(false, true) {
			w.done <- struct{}{}
		} else if w.ended.Returned {
			defer func() { _ = recover() }()
			j.drop()
		}
	}()
	j.run()
	w.ended.Returned = true
}

// finish passes the end of a job on to the goroutine that has waited for it.
func (a *attempt) finish() bool {
	if !a.worker.ended.Returned {
		a.end(nil)
	}
	a.worker.ended.Pass()
	return true
}
