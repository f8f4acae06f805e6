package gatewaytest

// WithRequestLog makes the server call log with the entry of the journal of each request
// once its response is sent, or its connection dropped, from several goroutines at once.
// The entry has no key in it. A log that blocks holds the connection of that request.
func WithRequestLog(log func(Request)) Option {
	return func(c *config) { c.log = log }
}

// logRequest passes a copy of an entry to the log, if there is one.
func (s *Server) logRequest(entry *Request) {
	if s.log == nil {
		return
	}
	s.mu.Lock()
	shown := entry.clone()
	s.mu.Unlock()
	s.log(shown)
}
