package faultserver

import (
	"fmt"
	"sync"
)

// A Record is what servers have seen. The zero value is ready, and is safe for
// concurrent use.
type Record struct {
	mu   sync.Mutex
	seen Seen
}

// Seen is the state of a Record.
type Seen struct {
	Requests   int      // requests that arrived as a whole
	Bodies     int      // requests whose body arrived, at least a byte of it
	BodyBytes  int      // bytes of bodies that arrived
	Commits    int      // invoices that were created
	Refusals   int      // invoices that were refused
	Conns      int      // connections that were made
	Violations []string // what must not happen and did
}

// Arrived records a request, or the beginning of one.
func (r *Record) Arrived(bodyBytes int, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.BodyBytes += bodyBytes
	if bodyBytes > 0 {
		r.seen.Bodies++
	}
	if whole {
		r.seen.Requests++
	}
}

// Committed records that an invoice was created.
func (r *Record) Committed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Commits++
}

// Refused records that an invoice was refused.
func (r *Record) Refused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Refusals++
}

// Connected records that a connection was made.
func (r *Record) Connected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Conns++
}

// Violation records something that must not happen.
func (r *Record) Violation(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Violations = append(r.seen.Violations, fmt.Sprintf(format, args...))
}

// Seen is what has been recorded since the last Reset.
func (r *Record) Seen() Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	seen.Violations = append([]string(nil), seen.Violations...)
	return seen
}

// Reset forgets what was recorded.
func (r *Record) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = Seen{}
}
