package faultserver

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Head is the status line of a response and its header, without the empty line
// at the end. Each header is a line.
func Head(status int, headers ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for _, header := range headers {
		b.WriteString(header + "\r\n")
	}
	return b.String()
}

// Response is a response as it stands on the wire, with a Content-Length.
func Response(status int, body string, headers ...string) string {
	return WithLength(Head(status, headers...), body)
}

// WithLength is a response with a head of [Head], or with a malformed head.
func WithLength(head, body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// Respond is a handler that sends the same bytes in response to each request.
func Respond(response string) Handler {
	text := []byte(response) // once: tests measure what a call allocates
	return EachRequest(func(c *Conn) bool {
		_, err := c.Write(text)
		return err == nil
	})
}

// Flood writes start, and then more without end, until nobody reads any longer.
func Flood(w io.Writer, start, more string) {
	if _, err := io.WriteString(w, start); err != nil {
		return
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	for err := error(nil); err == nil; {
		_, err = buffered.WriteString(more)
	}
}

// Trickle writes start, and then a space at each interval, until nobody reads
// any longer.
func Trickle(w io.Writer, start string, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	_, err := io.WriteString(w, start)
	for err == nil {
		<-ticker.C
		_, err = io.WriteString(w, " ")
	}
}

// A ChunkWriter writes each write as one chunk of the chunked encoding. The
// last, empty chunk is never written.
type ChunkWriter struct{ io.Writer }

// Write writes a chunk.
func (w ChunkWriter) Write(p []byte) (int, error) {
	if _, err := fmt.Fprintf(w.Writer, "%x\r\n%s\r\n", len(p), p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Gzip compresses text and then so many megabytes of spaces.
func Gzip(text string, megabytes int) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, text)
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	for range megabytes {
		_, _ = w.Write(spaces)
	}
	_ = w.Close()
	return packed.String()
}
