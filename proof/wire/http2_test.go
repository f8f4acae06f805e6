package wire

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/proof/internal/call"
)

// A stage is how far a gateway has come with a request over HTTP/2.
type stage string

const (
	settled   stage = "the settings"
	headed    stage = "the header of the request"
	whole     stage = "the whole request"
	committed stage = "the commit"
	answered  stage = "the header of the response"
	partly    stage = "a part of the response's body"
)

// A frameFault happens when a stream has come to a stage. It reports whether the connection goes on.
type frameFault func(c *frames, now stage, stream uint32) (goesOn bool)

// frames are the gateway's end of a connection, which speaks HTTP/2 frame by frame: it can do what no correct server does.
type frames struct {
	*http2.Framer
	world  *world
	peer   *peer
	at     frameFault
	bodies map[uint32]*bytes.Buffer // of requests that have not ended
	ended  map[uint32]bool          // streams that get nothing more
}

// speakHTTP2 makes the gateway speak HTTP/2 without TLS.
func (w *world) speakHTTP2(at frameFault) {
	w.transport.Protocols = new(http.Protocols)
	w.transport.Protocols.SetUnencryptedHTTP2(true)
	w.serve = func(p *peer) {
		c := &frames{http2.NewFramer(p, p.reader), w, p, at, map[uint32]*bytes.Buffer{}, map[uint32]bool{}}
		c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		if _, err := p.reader.Discard(len(http2.ClientPreface)); err != nil {
			return
		}
		_ = c.WriteSettings()
		for goesOn := at(c, settled, 0); goesOn; goesOn = c.next() {
		}
		for _, body := range c.bodies {
			w.Arrived(body.Len(), false)
		}
	}
}

// next reads a frame, and responds to a request that is whole. It reports whether the connection goes on.
func (c *frames) next() bool {
	frame, err := c.ReadFrame()
	if err != nil {
		return false
	}
	stream, isLast := frame.Header().StreamID, frame.Header().Flags.Has(http2.FlagDataEndStream)
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			_ = c.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = c.WritePing(true, f.Data)
		}
	case *http2.MetaHeadersFrame:
		c.bodies[stream] = &bytes.Buffer{}
		return c.pass(headed, stream) && (!isLast || c.respond(stream))
	case *http2.DataFrame:
		c.bodies[stream].Write(f.Data())
		return !isLast || c.respond(stream)
	}
	return true
}

// pass comes to a stage, unless the stream has ended.
func (c *frames) pass(now stage, stream uint32) bool { return c.ended[stream] || c.at(c, now, stream) }

// respond creates the invoice, and responds in three frames.
func (c *frames) respond(stream uint32) bool {
	c.world.Arrived(c.bodies[stream].Len(), true)
	delete(c.bodies, stream)
	body := []byte(c.world.body())
	for _, step := range []struct {
		stage stage
		take  func()
	}{
		{whole, func() {}},
		{committed, c.world.commit},
		{answered, func() { c.writeStatus(stream, "201") }},
		{partly, func() { _ = c.WriteData(stream, false, body[:9]) }},
		{"the end", func() { _ = c.WriteData(stream, true, body[9:]) }},
	} {
		if c.ended[stream] {
			return true
		}
		if step.take(); !c.pass(step.stage, stream) {
			return false
		}
	}
	return true
}

// writeStatus writes the header of a response.
func (c *frames) writeStatus(stream uint32, status string) {
	var block bytes.Buffer
	_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: status})
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
}

// frameFaults are what can happen at each stage.
func frameFaults() map[string]frameFault {
	goAway := func(isWithStream bool, code http2.ErrCode) frameFault {
		return func(c *frames, _ stage, stream uint32) bool {
			last := stream
			if !isWithStream {
				last = max(stream, 2) - 2
				c.ended[stream] = true
			}
			go func() { // net/http may leave the connection open if it gave up a request that waited for it
				<-c.world.over
				_ = c.peer.Close()
			}()
			return c.WriteGoAway(last, code, nil) == nil
		}
	}
	all := map[string]frameFault{
		"the connection is closed":               func(*frames, stage, uint32) bool { return false },
		"nothing more comes":                     func(c *frames, _ stage, _ uint32) bool { <-c.world.over; return false },
		"it goes away without the stream":        goAway(false, http2.ErrCodeNo),
		"it goes away in error, without it":      goAway(false, http2.ErrCodeEnhanceYourCalm),
		"it goes away with the stream":           goAway(true, http2.ErrCodeNo),
		"it goes away in error, with the stream": goAway(true, http2.ErrCodeInternal),
	}
	for code := http2.ErrCodeNo; code <= http2.ErrCodeHTTP11Required; code++ {
		all["the stream is reset with "+code.String()] = func(c *frames, _ stage, stream uint32) bool {
			c.ended[stream] = true
			return c.WriteRSTStream(max(stream, 1), code) == nil
		}
	}
	return all
}

// TestHTTP2_atEveryFrame has a gateway cause each fault after each frame, once. A read succeeds, by another attempt. An
// invoice is reported truthfully; if its header was there and its response is not whole, it is unknown.
func TestHTTP2_atEveryFrame(t *testing.T) {
	all, stages := &call.Summary{}, []stage{settled, headed, whole, committed, answered, partly}
	for what, fault := range frameFaults() {
		for i, where := range stages {
			for _, invoice := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					name := fmt.Sprintf("%s, after %s, invoice %v", what, where, invoice)
					w, once := newWorld(t, invoice), atomic.Bool{}
					w.speakHTTP2(func(c *frames, now stage, stream uint32) bool {
						return now != where || once.Swap(true) || fault(c, now, stream)
					})
					r := w.call()
					if !invoice {
						assert.NoError(t, r.Err, name)
						assert.Empty(t, w.Seen().Violations, name)
						return
					}
					var more []string
					if i >= slices.Index(stages, headed) && !strings.Contains(what, "with the stream") && r.Outcome() != gateway.OutcomeUnknown {
						more = append(more, "the response was not whole")
					}
					all.Add(name, r, more...)
				})
			}
		}
	}
	all.Verify(t)
	t.Logf("%v", all)
	assert.NotZero(t, all.Count(gateway.OutcomeSucceeded))
}
