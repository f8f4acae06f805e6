package gateway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cryptogw/gateway"
)

// Numbers of RFC 9113, sections 6 and 7.
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway = 0, 1, 3, 4, 6, 7

	flagEndStream, flagAck, flagEndHeaders = 1, 1, 4

	codeNone, codeInternal, codeRefused, codeCancel = 0, 2, 7, 8

	settingWindow = 4
)

// A peer is the server's side of an HTTP/2 connection, written out by hand:
// what a decent server would never send can be sent.
type peer struct {
	stage  *stage
	number int // of the connection, from 1
	conn   net.Conn
}

// An event is what has arrived of a request.
type event int

const (
	headerOnly event = iota // a header, with a body to come
	whole                   // all of it
)

// multiplexed plays a script behind HTTP/2 connections. It is called for each
// request when its header is there, and when all of it is there, and says
// whether the connection goes on.
func (s *stage) multiplexed(play func(p *peer, stream uint32, what event) bool, settings ...uint32) {
	config := s.trust()
	config.NextProtos = []string{"h2"}
	s.transport.ForceAttemptHTTP2 = true
	s.piped(func(number int, conn net.Conn) {
		posted := newPostbox(conn)
		defer func() {
			s.open.Go(func() { hold(conn) }) // until the last letter is out
			_ = posted.Close()
		}()
		s.open.Go(func() { // a connection that was told to go away stays open while the server lets it
			<-s.struck
			_ = conn.Close()
		})
		secure := tls.Server(posted, config)
		if _, err := io.ReadFull(secure, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		p := &peer{stage: s, number: number, conn: secure}
		var payload []byte
		for i := 0; i+1 < len(settings); i += 2 {
			payload = binary.BigEndian.AppendUint16(payload, uint16(settings[i]))
			payload = binary.BigEndian.AppendUint32(payload, settings[i+1])
		}
		p.send(frameSettings, 0, 0, payload)
		for p.next(play) {
		}
	})
}

// next reads one frame. It reports whether the connection goes on.
func (p *peer) next(play func(p *peer, stream uint32, what event) bool) bool {
	var head [9]byte
	if _, err := io.ReadFull(p.conn, head[:]); err != nil {
		return false
	}
	payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(p.conn, payload); err != nil {
		return false
	}
	stream, ended := binary.BigEndian.Uint32(head[5:]), head[4]&flagEndStream != 0
	switch kind, ack := head[3], head[4]&flagAck != 0; {
	case kind == frameSettings && !ack:
		p.send(frameSettings, flagAck, 0, nil)
	case kind == framePing && !ack:
		p.send(framePing, flagAck, 0, payload)
	case kind == frameHeaders && !ended:
		return play(p, stream, headerOnly)
	case kind == frameHeaders || kind == frameData && ended:
		p.stage.enter(len(payload)*int(1-kind), true)
		return play(p, stream, whole)
	case kind == frameData:
		p.stage.enter(len(payload), false)
	}
	return true
}

func (p *peer) send(kind, flags byte, stream uint32, payload []byte) {
	n := len(payload)
	frame := binary.BigEndian.AppendUint32([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}, stream)
	_, _ = p.conn.Write(append(frame, payload...))
}

// answer answers: 0x88 is the whole header of a 200 in HPACK.
func (p *peer) answer(stream uint32, body string) {
	p.send(frameHeaders, flagEndHeaders, stream, []byte{0x88})
	p.send(frameData, flagEndStream, stream, []byte(body))
}

// respond commits and answers well.
func (p *peer) respond(stream uint32) bool {
	p.stage.commit()
	p.answer(stream, p.stage.good())
	return true
}

// reset ends a stream.
func (p *peer) reset(stream, code uint32) bool {
	p.send(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code))
	return true
}

// goAway says that no stream after last was looked at, and reads on until the
// client has gone.
func (p *peer) goAway(last uint32) bool {
	p.send(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), codeNone))
	hold(p.conn)
	return false
}

// A postbox is a connection whose writes never wait: in HTTP/2 both sides write
// when they like, and a pipe without a buffer would hold them both up.
type postbox struct {
	net.Conn
	letters chan []byte
	empty   chan struct{}
}

func newPostbox(conn net.Conn) *postbox {
	b := &postbox{conn, make(chan []byte, 1000), make(chan struct{})}
	go func() {
		defer close(b.empty)
		for letter := range b.letters {
			_, _ = conn.Write(letter)
		}
	}()
	return b
}

func (b *postbox) Write(p []byte) (int, error) {
	b.letters <- bytes.Clone(p)
	return len(p), nil
}

// Close closes the connection when all is written.
func (b *postbox) Close() error {
	close(b.letters)
	<-b.empty
	return b.Conn.Close()
}

// enter enters a part of a request in the ledger.
func (s *stage) enter(body int, end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies += body
	if end {
		s.sends++
	}
}

func TestFaults_HTTP2(t *testing.T) {
	t.Parallel()
	play(t, []fault{
		{
			name:  "row 30: a good answer over HTTP/2, to compare with",
			set:   func(s *stage) { s.multiplexed(onceWhole((*peer).respond)) },
			read:  verdict{kind: works, sends: 1},
			write: verdict{kind: works, sends: 1, commits: 1},
		},
		{
			name:  "row 30: the stream is refused once, after the whole request",
			set:   resetsFirst(codeRefused),
			read:  verdict{kind: works, sends: 2, dials: 1}, // net/http repeats a read by itself
			write: verdict{kind: unknown, attempts: 1, sends: 1},
		},
		{
			name: "row 30: the stream is refused as soon as its header is there",
			set: func(s *stage) {
				s.multiplexed(func(p *peer, stream uint32, _ event) bool { return p.reset(stream, codeRefused) }, settingWindow, 0)
			},
			read:  verdict{kind: transport, sends: anyNumber},
			write: verdict{kind: unknown, attempts: 1, sends: anyNumber, dials: 1}, // the body was looked at, though it may not have left
		},
		{
			name: "row 31: the server goes away without the stream, after the whole request",
			set: func(s *stage) {
				s.multiplexed(onceWhole(func(p *peer, stream uint32) bool {
					if p.number == 1 {
						return p.goAway(0)
					}
					return p.respond(stream)
				}))
			},
			read:  verdict{kind: works, sends: 2, dials: 2}, // net/http repeats a read by itself
			write: verdict{kind: unknown, attempts: 1, sends: 1, dials: 1},
		},
		{
			name: "row 31: the server commits and goes away with the stream",
			set: func(s *stage) {
				s.multiplexed(onceWhole(func(p *peer, stream uint32) bool {
					s.commit()
					p.send(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, stream), codeNone))
					return false
				}))
			},
			read:  verdict{kind: transport, attempts: 3, sends: 3},
			write: verdict{kind: unknown, attempts: 1, sends: 1, commits: 1, dials: 1},
		},
		{
			name: "row 32: the server went away before the request",
			set: func(s *stage) {
				s.multiplexed(onceWhole(func(p *peer, stream uint32) bool {
					if p.number == 1 {
						p.answer(stream, enveloped(withdrawalJSON))
						return p.goAway(stream)
					}
					return p.respond(stream)
				}))
				s.warm()
				synctest.Wait() // until the client has seen it
			},
			read:  verdict{kind: works, sends: 1, dials: 2},
			write: verdict{kind: works, sends: 1, commits: 1, dials: 2},
		},
		{
			name:  "row 33: the stream ends in an internal error",
			set:   resets(codeInternal),
			read:  verdict{kind: transport, attempts: 3, sends: 3},
			write: verdict{kind: unknown, attempts: 1, sends: 1},
		},
		{
			name:  "row 33: the stream is cancelled",
			set:   resets(codeCancel),
			read:  verdict{kind: transport, attempts: 3, sends: 3},
			write: verdict{kind: unknown, attempts: 1, sends: 1},
		},
		{
			name: "row 33: the stream is cancelled after the answer's header",
			set: func(s *stage) {
				s.multiplexed(onceWhole(func(p *peer, stream uint32) bool {
					s.commit()
					p.send(frameHeaders, flagEndHeaders, stream, []byte{0x88})
					return p.reset(stream, codeCancel)
				}))
			},
			read:  verdict{kind: transport, phase: gateway.PhaseRead, status: 200, attempts: 3, sends: 3},
			write: verdict{kind: unknown, phase: gateway.PhaseRead, status: 200, attempts: 1, sends: 1, commits: 1},
		},
		{
			name: "row 34: packets are dropped on a connection that was good",
			set: func(s *stage) {
				s.transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second}
				s.multiplexed(onceWhole(func(p *peer, stream uint32) bool {
					if p.number == 1 {
						p.answer(stream, enveloped(withdrawalJSON))
						return true
					}
					return p.respond(stream)
				}))
				hole := &blackHole{}
				s.transport.DialContext = hole.first(s.transport.DialContext)
				s.warm()
				hole.shut.Store(true)
			},
			read:  verdict{kind: works, sends: 1, dials: 2},
			write: verdict{kind: unknown, attempts: 1, dials: 1},
		},
	})
}

// onceWhole waits for all of a request.
func onceWhole(play func(p *peer, stream uint32) bool) func(*peer, uint32, event) bool {
	return func(p *peer, stream uint32, what event) bool {
		return what != whole || play(p, stream)
	}
}

// resets ends every stream, once all of the request is there.
func resets(code uint32) func(*stage) {
	return func(s *stage) {
		s.multiplexed(onceWhole(func(p *peer, stream uint32) bool { return p.reset(stream, code) }))
	}
}

// resetsFirst ends the first stream of a connection, and answers the others.
func resetsFirst(code uint32) func(*stage) {
	return func(s *stage) {
		s.multiplexed(onceWhole(func(p *peer, stream uint32) bool {
			if stream == 1 {
				return p.reset(stream, code)
			}
			return p.respond(stream)
		}))
	}
}

// A blackHole swallows what is written to the first connection and lets
// nothing through from it, once it is shut; nobody is told.
type blackHole struct {
	net.Conn
	shut atomic.Bool
}

func (h *blackHole) first(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil || h.Conn != nil {
			return conn, err
		}
		h.Conn = conn
		return h, nil
	}
}

func (h *blackHole) Write(p []byte) (int, error) {
	if h.shut.Load() {
		return len(p), nil
	}
	return h.Conn.Write(p)
}
