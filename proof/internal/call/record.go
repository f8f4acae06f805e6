package call

import (
	"fmt"
	"slices"
	"sync"
)

// A Record is what a gateway has seen. The zero value is ready, and is safe for concurrent use.
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

func (r *Record) note(change func(*Seen)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.seen)
}

// Arrived records a request, or the beginning of one.
func (r *Record) Arrived(bodyBytes int, whole bool) {
	r.note(func(s *Seen) {
		s.BodyBytes += bodyBytes
		if bodyBytes > 0 {
			s.Bodies++
		}
		if whole {
			s.Requests++
		}
	})
}

// Committed records that an invoice was created.
func (r *Record) Committed() { r.note(func(s *Seen) { s.Commits++ }) }

// Refused records that an invoice was refused.
func (r *Record) Refused() { r.note(func(s *Seen) { s.Refusals++ }) }

// Connected records that a connection was made.
func (r *Record) Connected() { r.note(func(s *Seen) { s.Conns++ }) }

// Violation records something that must not happen.
func (r *Record) Violation(format string, args ...any) {
	r.note(func(s *Seen) { s.Violations = append(s.Violations, fmt.Sprintf(format, args...)) })
}

// Reset forgets what was recorded.
func (r *Record) Reset() { r.note(func(s *Seen) { *s = Seen{} }) }

// Seen is what has been recorded since the last Reset.
func (r *Record) Seen() (seen Seen) {
	r.note(func(s *Seen) {
		seen = *s
		seen.Violations = slices.Clone(seen.Violations)
	})
	return seen
}
