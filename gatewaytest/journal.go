package gatewaytest

import (
	"net/http"
	"slices"
	"time"
)

// A Request is one entry of the journal, see [Server.Requests]. The server's key
// and whatever else stood in the place of a key read "[REDACTED]" in it.
type Request struct {
	Operation Operation   // what the request was for; empty for an unknown route
	Method    string      // the HTTP method
	Target    string      // the request target as it was sent, before any decoding
	Header    http.Header // the headers
	Body      []byte      // the body; a body over 64 KiB is not kept
	KeyIn     string      // where a key was: "header", "body" (of an invoice) or "" for nowhere
	KeyOK     bool        // whether that key was the server's
	Status    int         // the status of the answer; 0 as long as there is none
	Fault     string      // the name of the [Fault] the request met, "rate limit" (see [Server.SetRateLimit]) or ""
	At        time.Time   // when the request arrived, by the clock of [Server.Now]
}

// Requests returns a copy of the journal: every request that has arrived, oldest
// first, one that is still stalled included. The headers stand in it from
// the start, Body, KeyIn and KeyOK once the body has been read, Status
// before the answer leaves.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, len(s.journal))
	for i, entry := range s.journal {
		all[i] = *entry
		all[i].Header = entry.Header.Clone()
		all[i].Body = slices.Clone(entry.Body)
	}
	return all
}

// arrive enters a request in the journal and finds the trouble that waits for it.
// Both happen under one lock: the journal's order is the order of the troubles.
func (s *Server) arrive(c *call) (*Request, Fault) {
	entry := &Request{
		Operation: c.op,
		Method:    c.r.Method,
		Target:    s.redact.target(c.r.RequestURI),
		Header:    s.redact.header(c.r.Header),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entry.At = s.now()
	trouble := s.nextFault(c.op, entry.At)
	entry.Fault = trouble.name
	s.journal = append(s.journal, entry)
	return entry, trouble
}

// identify finds the key in a request whose body has been read, and completes
// its entry in the journal.
func (s *Server) identify(c *call, entry *Request) {
	if key := c.r.Header.Get("X-Api-Key"); key != "" {
		c.keyIn, c.keyOK = "header", key == s.key
	}
	if value, ok := c.fields.key(); ok {
		key, isText := text(value)
		c.keyIn, c.keyOK = "body", isText && key == s.key
	}
	var body []byte
	if len(c.body) <= maxBody {
		body = s.redact.body(c.body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entry.Body, entry.KeyIn, entry.KeyOK = body, c.keyIn, c.keyOK
}
