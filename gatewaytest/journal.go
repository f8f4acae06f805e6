package gatewaytest

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Request is one entry of the journal, see [Server.Requests]. In it, the
// server's key and any other value in the place of a key are "[REDACTED]".
type Request struct {
	Operation Operation   // the operation; empty for an unknown route
	Method    string      // the HTTP method
	Target    string      // the request target as sent, not decoded
	Header    http.Header // the headers
	Body      []byte      // the body; empty if it is larger than 64 KiB
	KeyIn     string      // where the key was: "header", "body" (of an invoice) or "" for nowhere
	KeyOK     bool        // whether that key was the server's
	Status    int         // the status of the response; 0 until there is one
	Fault     string      // the name of the [Fault] that the request met; "rate-limit" (see [Server.SetRateLimit]); "" for none
	At        time.Time   // when the request arrived, by the clock of [Server.Now]
}

// Requests returns a copy of the journal: every request that has arrived, oldest
// first, including those still in progress. Header is set on arrival, Body, KeyIn
// and KeyOK once the body has been read, and Status before the response is sent.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, len(s.journal))
	for i, entry := range s.journal {
		all[i] = *entry
		all[i].Header, all[i].Body = entry.Header.Clone(), slices.Clone(entry.Body)
	}
	return all
}

// record enters a request in the journal and takes its fault from the queue. Both happen
// under one lock, so that the journal has the order of the faults.
func (s *Server) record(c *call) (entry *Request, fault Fault) {
	entry = &Request{
		Operation: c.op,
		Method:    s.redact(c.r.Method),
		Target:    s.redact(c.r.RequestURI),
		Header:    s.redactHeader(c.r.Header),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entry.At = s.now()
	fault = s.nextFault(c.op, entry.At)
	entry.Fault = fault.name
	s.journal = append(s.journal, entry)
	return entry, fault
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
	var body string
	if len(c.body) <= maxBody {
		body = s.redact(string(c.body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entry.Body, entry.KeyIn, entry.KeyOK = []byte(body), c.keyIn, c.keyOK
}

const redacted = "[REDACTED]" // replaces a key

// keyMember matches the member with a key, whatever the key is: a merchant may send a real key to a stand-in by mistake.
var keyMember = regexp.MustCompile(`("(?i:api[-_]?key)"\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|[^\s"{}\[\],]+)`)

// spellingsOf matches a key as it is and as URLs and JSON write it, in any case.
func spellingsOf(key string) *regexp.Regexp {
	quoted := quote(key)
	var all []string
	for _, spelling := range []string{key, url.QueryEscape(key), url.PathEscape(key), quoted[1 : len(quoted)-1]} {
		all = append(all, regexp.QuoteMeta(spelling))
	}
	return regexp.MustCompile(`(?i:` + strings.Join(all, "|") + `)`)
}

// redact returns a text without keys.
func (s *Server) redact(text string) string {
	text = keyMember.ReplaceAllString(text, `${1}"`+redacted+`"`)
	return s.spellings.ReplaceAllLiteralString(text, redacted)
}

// redactHeader returns a copy without keys, and without the values of credentials.
func (s *Server) redactHeader(h http.Header) http.Header {
	clean := http.Header{}
	for name, values := range h {
		for _, value := range values {
			switch name {
			case "X-Api-Key", "Authorization", "Proxy-Authorization", "Cookie":
				value = redacted
			}
			clean.Add(s.redact(name), s.redact(value))
		}
	}
	return clean
}
