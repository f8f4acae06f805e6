package attempt

import "time"

// NewBody returns a body that reads text and has not expired before a time; zero for never.
func NewBody(text []byte, expires time.Time) *Body {
	b := &Body{expires: expires}
	b.text.Reset(text)
	return b
}
