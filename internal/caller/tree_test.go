package caller_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway/internal/caller"
)

// unwraps is an error of a caller's with an Unwrap of its own.
type unwraps struct{ unwrap func() error }

func (unwraps) Error() string   { return "unwraps" }
func (e unwraps) Unwrap() error { return e.unwrap() }

func TestLeaves(t *testing.T) {
	t.Parallel()
	stopped := fmt.Errorf("stopped: %w", io.EOF)
	endless := &unwraps{}
	endless.unwrap = func() error { return endless }
	for _, tt := range []struct {
		name   string
		err    error
		leaves []error
		whole  bool
	}{
		{"an error that wraps nothing", io.EOF, []error{io.EOF}, true},
		{"one that wraps nil", &unwraps{func() error { return nil }}, nil, true},
		{"one that is wrapped twice", fmt.Errorf("b: %w", fmt.Errorf("a: %w", io.EOF)), []error{io.EOF}, true},
		{"several that are joined", errors.Join(io.EOF, nil, fmt.Errorf("a: %w", io.ErrNoProgress)), []error{io.ErrNoProgress, io.EOF}, true},
		{"one at which the walk stops", errors.Join(stopped, io.EOF), []error{io.EOF, stopped}, true},
		{"one whose Unwrap returns itself", endless, nil, false},
		{"one whose Unwrap panics", errors.Join(&unwraps{func() error { panic("of the error") }}, io.EOF), []error{io.EOF}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			leaves, whole := caller.Leaves(tt.err, func(err error) bool { return err == stopped })
			if tt.name == "one that wraps nil" {
				tt.leaves = []error{tt.err}
			}
			assert.Equal(t, tt.whole, whole)
			assert.Len(t, leaves, len(tt.leaves))
			for i := range tt.leaves {
				assert.Same(t, tt.leaves[i], leaves[i])
			}
		})
	}
}
