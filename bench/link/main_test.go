package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway/bench/trust"
)

// Over HTTP/1.1 a call on a new connection takes three round trips, and one on a
// connection that is open takes one; a lost connection is counted.
func TestRow(t *testing.T) {
	forget, err := trust.PEM(newServer(false).certificate())
	if err != nil {
		t.Fatal(err)
	}
	defer forget()
	for i, want := range []float64{3, 1, 1, 3, 1} {
		r := &row{roundTrip: 100 * time.Millisecond, subject: subjects()[i], calls: 2}
		if err := r.measure(); err != nil {
			t.Fatal(r.subject.name, err)
		}
		// A processor that is busy for longer than a round trip can add one.
		if got := r.trips(); got < want || got > want+0.5 {
			t.Errorf("%s takes %v round trips, want %v", r.subject.name, got, want)
		}
		var text strings.Builder
		print(&text, []*row{r})
		if !strings.Contains(text.String(), r.subject.name) {
			t.Error(text.String())
		}
		if text := drawing([]*row{r}); !strings.Contains(text, r.subject.name) {
			t.Error(text)
		}
	}
	r := &row{subject: subjects()[1], calls: 20, lossEvery: 7}
	if err := r.measure(); err != nil || r.lost == 0 || r.failed == 0 {
		t.Errorf("%d lost, %d failed, %v", r.lost, r.failed, err)
	}
}
