package sqlguard

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	mostTry     = 3 * time.Second        // on one connection
	tryPause    = 100 * time.Millisecond // between two
	mostTryTime = 10 * time.Second       // after which no further one begins
	mostWait    = time.Second            // likewise, where a person waits
)

// onConn calls f with a connection. If the failure says that the server has become read-only or is going away, or that
// the connection is lost, onConn closes the connection and calls f with another one, until the context ends, for up to 10
// seconds, as long as a switchover may take. If f may be repeated although a try may have been executed, a try without an
// answer for 3 seconds counts as lost. A statement that may not be repeated serves a person, who learns the reason after
// a second.
func (g *Guard) onConn(ctx context.Context, may repeats, f func(context.Context, handle) error) error {
	if g.cfg.dialect == SQLite {
		return g.withBusyTimeout(ctx, f)
	}
	most := mostTryTime
	if may == isRefused {
		most = mostWait
	}
	for start := time.Now(); ; {
		again, err := g.try(ctx, may, f)
		if !again || ctx.Err() != nil || time.Since(start) >= most || wait(ctx, tryPause) != nil {
			return err
		}
	}
}

// A repeats says whether a failed statement may be run again.
type repeats bool

const (
	isRefused    repeats = false // only if it was not executed
	isRepeatable repeats = true  // even if it may have been executed
)

// try calls f with a connection, and reports whether it is to be called again, with another one.
func (g *Guard) try(ctx context.Context, may repeats, f func(context.Context, handle) error) (again bool, err error) {
	bounded := ctx
	if may == isRepeatable {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, g.mostTry)
		defer cancel()
	}
	conn, err := g.db.Conn(bounded)
	if err != nil {
		return bounded.Err() != nil || g.sql.refuses(err) || g.sql.isLost(err), err
	}
	defer func() { _ = conn.Close() }() // returns it to the handle
	err = f(bounded, conn)
	refused := g.sql.refuses(err)
	lost := err != nil && (bounded.Err() != nil || g.sql.isLost(err))
	if refused && g.sql.terminate != "" { // a pool of the driver's own takes back what the handle closes
		_, _ = conn.ExecContext(bounded, g.sql.terminate)
	}
	if refused || lost {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it
	}
	return refused || lost && bool(may), err
}

// refuses reports whether a server has executed nothing because it is read-only, or not ready.
func (s *schema) refuses(err error) bool { return hasCode(err, s.refusals) }

// ErrUnanswered matches an error of ResolveAll, Mark, Prune or Forget if the database may have made the change, because
// its answer was lost.
var ErrUnanswered = errors.New("the database may have made the change or not")

// unanswered returns the error of a statement that changes something, which matches ErrUnanswered unless the
// server has refused it, or has not got it.
func (s *schema) unanswered(err error) error {
	isAnswered := s.driver == dialects[SQLite].driver || sqlState(err) != "" || err != nil && strings.HasPrefix(err.Error(), "Error ")
	if err == nil || errors.Is(err, driver.ErrBadConn) || isAnswered && !s.isLost(err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, ErrUnanswered)
}

// isLost reports whether a connection is lost, or the server is going away.
func (s *schema) isLost(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || hasCode(err, s.losses)
}

// hasCode reports whether an error has one of the codes: a SQLSTATE, or what its text begins with.
func hasCode(err error, codes []string) bool {
	return err != nil && slices.ContainsFunc(codes, func(code string) bool {
		return sqlState(err) == code || strings.HasPrefix(err.Error(), code)
	})
}
