package attempt

import "time"

// NewBody returns a body that reads text and has not expired before a time; zero for never.
func NewBody(text []byte, expires time.Time) *Body {
	b := &Body{expires: expires}
	b.text.Reset(text)
	return b
}

// BodyThatBegins returns a body that reads text once begin allows it.
func BodyThatBegins(text []byte, begin func() bool) *Body {
	b := &Body{begin: begin}
	b.text.Reset(text)
	return b
}
