package faultserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A Boundary is a place between two frames of a request and its response.
type Boundary string

// The boundaries, in their order.
const (
	Handshake      Boundary = "the handshake"
	Settings       Boundary = "the settings"
	RequestHeader  Boundary = "the request's header"
	RequestData    Boundary = "a frame of the request's body"
	RequestWhole   Boundary = "the last frame of the request"
	Committed      Boundary = "the commit"
	ResponseHeader Boundary = "the response's header"
	ResponseData   Boundary = "a frame of the response's body"
)

// A StreamFault is what happens at a boundary. It reports whether the connection goes on.
type StreamFault func(c *HTTP2Conn, stream uint32) bool

// An HTTP2 speaks the server's side of HTTP/2 frame by frame, so that it can do what no correct server does. It
// responds to every request, and has one fault. Its fields are set before the first connection.
type HTTP2 struct {
	*Server

	TLS     *tls.Config // offers h2; nil for HTTP/2 without TLS
	Respond func(post bool, body []byte) (response string)
	Window  uint32 // bytes of a body that may come before more are allowed

	Fault    StreamFault
	Where    Boundary // of the fault: the first of this name
	At       int      // of the fault, if Where is "": the boundary, counted since Start
	EachTime bool     // the fault happens at every boundary of its name

	OnSettingsAck func(c *HTTP2Conn) bool // reports whether the connection goes on; may be nil

	mu      sync.Mutex
	started bool
	faulty  bool // the fault has happened
	passed  []Boundary
	leaving []*HTTP2Conn // those that sent GOAWAY
}

// NewHTTP2 makes server speak HTTP/2.
func NewHTTP2(server *Server, config *tls.Config, respond func(post bool, body []byte) string) *HTTP2 {
	s := &HTTP2{Server: server, TLS: config, Respond: respond, Window: 48, At: -1}
	server.Handler = s.serve
	return s
}

// Start begins the call that the fault is for; before it there is none.
func (s *HTTP2) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
}

// Passed are the boundaries since Start without the one of the fault.
func (s *HTTP2) Passed() []Boundary {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Boundary(nil), s.passed...)
}

// Close waits until all connections are gone. A connection that sent GOAWAY is ended here: net/http may leave it
// open when it gave up a request that waited for it.
func (s *HTTP2) Close() {
	s.Finish()
	s.mu.Lock()
	for _, c := range s.leaving {
		_ = c.Net.Raw.SetReadDeadline(time.Now().Add(time.Second))
	}
	s.mu.Unlock()
	s.Server.Close()
}

// An HTTP2Conn is the server's side of a connection.
type HTTP2Conn struct {
	*http2.Framer
	Net    *Conn
	Server *HTTP2
	Mute   bool // it reads on and sends nothing

	bodies map[uint32]*bytes.Buffer // of requests that have not ended
	posts  map[uint32]bool
	reset  map[uint32]bool
}

func (s *HTTP2) serve(raw *Conn) {
	if s.TLS != nil {
		raw.Conn = tls.Server(raw.Conn, s.TLS)
	}
	c := &HTTP2Conn{
		Framer: http2.NewFramer(raw, raw), Net: raw, Server: s,
		bodies: map[uint32]*bytes.Buffer{}, posts: map[uint32]bool{}, reset: map[uint32]bool{},
	}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	defer func() { // what arrived of requests that did not end
		for _, body := range c.bodies {
			s.Record.Arrived(body.Len(), false)
		}
	}()
	if secure, ok := raw.Conn.(*tls.Conn); ok && secure.HandshakeContext(context.Background()) != nil || !c.pass(Handshake, 0) {
		return
	}
	if _, err := io.ReadFull(c.Net, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: s.Window}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100})
	for goesOn := c.pass(Settings, 0); goesOn; goesOn = c.next() {
	}
}

// pass reaches a boundary, where the fault may happen. It reports whether the connection goes on.
func (c *HTTP2Conn) pass(where Boundary, stream uint32) bool {
	s := c.Server
	s.mu.Lock()
	active := s.started && s.Fault != nil && (s.EachTime || !s.faulty)
	here := active && (s.Where == where || s.Where == "" && len(s.passed) == s.At)
	if here {
		s.faulty = true
	} else if s.started && !s.faulty {
		s.passed = append(s.passed, where)
	}
	s.mu.Unlock()
	return !here || s.Fault(c, stream)
}

// next reads a frame. It reports whether the connection goes on.
func (c *HTTP2Conn) next() bool {
	frame, err := c.ReadFrame()
	if err != nil {
		return false
	}
	stream := frame.Header().StreamID
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() && !c.Mute {
			_ = c.WriteSettingsAck()
		}
		if f.IsAck() && c.Server.OnSettingsAck != nil {
			return c.Server.OnSettingsAck(c)
		}
	case *http2.PingFrame:
		if !f.IsAck() && !c.Mute {
			_ = c.WritePing(true, f.Data)
		}
	case *http2.MetaHeadersFrame:
		c.posts[stream], c.bodies[stream] = f.PseudoValue("method") == "POST", &bytes.Buffer{}
		return c.proceed(RequestHeader, stream, f.StreamEnded())
	case *http2.DataFrame:
		if body, begun := c.bodies[stream]; begun {
			body.Write(f.Data())
		}
		if n := uint32(len(f.Data())); n > 0 && !c.Mute && !f.StreamEnded() {
			_ = c.WriteWindowUpdate(stream, n)
		}
		return c.proceed(RequestData, stream, f.StreamEnded())
	}
	return true
}

// silent reports whether nothing may be sent on a stream.
func (c *HTTP2Conn) silent(stream uint32) bool { return c.Mute || c.reset[stream] }

// proceed passes a boundary, and responds to a request that is whole.
func (c *HTTP2Conn) proceed(where Boundary, stream uint32, ended bool) bool {
	var body []byte
	if ended && c.bodies[stream] != nil {
		body = c.bodies[stream].Bytes()
		delete(c.bodies, stream)
		c.Server.Record.Arrived(len(body), true)
	}
	if !ended {
		return c.silent(stream) || c.pass(where, stream)
	}
	for _, where := range []Boundary{where, RequestWhole} {
		if c.silent(stream) {
			return true
		}
		if !c.pass(where, stream) {
			return false
		}
	}
	if c.silent(stream) {
		return true
	}
	response := c.Server.Respond(c.posts[stream], body)
	return c.pass(Committed, stream) && c.respond(stream, response)
}

// respond sends a header and three frames of data.
func (c *HTTP2Conn) respond(stream uint32, body string) bool {
	third := len(body) / 3
	for i, part := range []string{"", body[:third], body[third : 2*third], body[2*third:]} {
		if c.silent(stream) {
			return true
		}
		where := ResponseData
		if i == 0 {
			where = ResponseHeader
			c.WriteStatus(stream, "201")
		} else {
			_ = c.WriteData(stream, i == 3, []byte(part))
		}
		if !c.pass(where, stream) {
			return false
		}
	}
	return true
}

// WriteStatus writes the header of a response.
func (c *HTTP2Conn) WriteStatus(stream uint32, status string) {
	var block bytes.Buffer
	_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: status})
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
}

// ResetStream resets the stream.
func ResetStream(code http2.ErrCode) StreamFault {
	return func(c *HTTP2Conn, stream uint32) bool {
		c.reset[stream] = true
		return c.WriteRSTStream(max(stream, 1), code) == nil
	}
}

// GoAway reports that no stream after the one at offset from this was processed, and reads on until the client
// has closed the connection.
func GoAway(offset int, code http2.ErrCode) StreamFault {
	return func(c *HTTP2Conn, stream uint32) bool {
		s := c.Server
		s.mu.Lock()
		s.leaving = append(s.leaving, c)
		s.mu.Unlock()
		last := uint32(max(int(stream)+offset, 0))
		_ = c.WriteGoAway(last, code, nil)
		c.Mute = last < max(stream, 1)
		return true
	}
}

// BreakOff ends the connection.
func BreakOff(how Manner) StreamFault {
	return func(c *HTTP2Conn, _ uint32) bool {
		c.Mute = true
		return c.Net.BreakOff(how) // to see what still arrives
	}
}

// StreamFaults are all of the above, by name.
func StreamFaults() map[string]StreamFault {
	all := map[string]StreamFault{
		"the connection is closed":                       BreakOff(FIN),
		"the connection is reset":                        BreakOff(RST),
		"the server neither reads nor responds":          BreakOff(Stall),
		"the server goes away without the stream":        GoAway(-2, http2.ErrCodeNo),
		"the server goes away with the stream":           GoAway(0, http2.ErrCodeNo),
		"the server goes away in error":                  GoAway(-2, http2.ErrCodeEnhanceYourCalm),
		"the server goes away in error, with the stream": GoAway(0, http2.ErrCodeInternal),
	}
	for code := http2.ErrCodeNo; code <= http2.ErrCodeHTTP11Required; code++ {
		all[fmt.Sprintf("the stream is reset with %v", code)] = ResetStream(code)
	}
	return all
}
