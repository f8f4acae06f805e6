package attempt

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/cryptogw/gateway/internal/caller"
)

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

// CameEarly reports whether something unread was there when the request was to be written: the
// response may be that.
func (r *Response) CameEarly() bool {
	watched := r.attempt.watched.Load()
	return watched != nil && watched.wasEarly()
}

// EndWithin ends the attempt after d, unless it ends before.
func (r *Response) EndWithin(d time.Duration) {
	if d < time.Until(r.attempt.deadline) {
		r.attempt.endAfter(d)
	}
}

// endsBy reports whether a context surely ends at its deadline, so that the attempt needs no timer
// of its own: one of [context.WithTimeout] has a timer. Any other context may have a
// deadline and not end, and a deadline of the wall clock may be later than the timer shows.
func (s *Sender) endsBy(parent context.Context, deadline time.Time) bool {
	if wrapper, ok := parent.(interface{ Unwrap() context.Context }); ok {
		parent = wrapper.Unwrap()
	}
	isMonotonic := deadline != deadline.Round(0)
	return isMonotonic && reflect.TypeOf(parent) == s.timed
}

// timedContext returns the type of a context of [context.WithTimeout].
func timedContext() reflect.Type {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	return reflect.TypeOf(ctx)
}

// closeIfHeld closes the connection soon after the end of the attempt, unless the body has
// been read by then. Over HTTP/2 net/http confirms what it reads, and waits for that while
// the peer accepts nothing, whatever happens to the attempt.
func (a *attempt) closeIfHeld() (hasBeenRead func()) {
	returned := make(chan struct{})
	stop := context.AfterFunc(a, func() {
		select {
		case <-returned:
		case <-time.After(caller.Grace):
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

// Run implements [caller.Job].
func (r *reading[T]) Run() { r.result = r.read(r.resp) }

// Drop implements [caller.Job].
func (r *reading[T]) Drop() {}

// await runs a job and waits for it, at most until soon after the end of the attempt. How it
// ends is passed on to the caller. After a job that has not finished, none may follow.
func (a *attempt) await(j caller.Job) (finished bool) {
	if a.worker == nil {
		a.worker = caller.NewWorker()
	}
	ended := a.worker.Await(a, caller.Grace, j)
	if ended == nil {
		return false
	}
	if !ended.Returned {
		a.end(nil)
	}
	ended.Pass()
	return true
}
