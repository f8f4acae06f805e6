package attempt

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

type wrapped struct{ context.Context }

func (w wrapped) Unwrap() context.Context { return w.Context }

// A deadlineOnly has a deadline that does not end it.
type deadlineOnly struct{ context.Context }

func (deadlineOnly) Done() <-chan struct{} { return nil }

// an attempt has a timer of its own, unless a timer of package context ends it before.
func TestSender_begin(t *testing.T) {
	t.Parallel()
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	late, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	ofTheWallClock, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Second).Round(0))
	defer cancel()
	child, cancel := context.WithCancel(soon)
	defer cancel()
	grandchild, cancel := context.WithTimeout(deadlineOnly{soon}, time.Minute)
	defer cancel()
	for name, tt := range map[string]struct {
		parent context.Context
		timer  bool
	}{
		"a context of WithTimeout that ends before":               {soon, false},
		"the same in the context of a call":                       {wrapped{soon}, false},
		"one that ends after":                                     {late, true},
		"one with a deadline of the wall clock, which may be set": {ofTheWallClock, true},
		"one of WithCancel, whose parent could be anything":       {child, true},
		"one of WithTimeout, whose parent claims to end before":   {grandchild, true},
		"one that only has a deadline":                            {deadlineOnly{soon}, true},
		"one without a deadline":                                  {t.Context(), true},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewSender(http.DefaultTransport, time.Minute).begin(tt.parent)
			defer a.end(nil)
			assert.Equal(t, tt.timer, a.timer != nil)
		})
	}
}
