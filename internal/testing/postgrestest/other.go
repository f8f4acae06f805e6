//go:build !unix

package postgrestest

import "errors"

// A Server cannot be started on this system.
type Server struct{ Port string }

// errUnix is why.
var errUnix = errors.New("tests start PostgreSQL on Unix only")

// Start returns an error.
func Start(...string) (*Server, error) { return nil, errUnix }

// DSN returns nothing.
func (*Server) DSN(string) string { return "" }

// Replica returns an error.
func (*Server) Replica() (*Server, error) { return nil, errUnix }

// Kill does nothing.
func (*Server) Kill() {}

// Restart returns an error.
func (*Server) Restart(string) error { return errUnix }

// Stop does nothing.
func (*Server) Stop() {}

// Suspend returns an error.
func (*Server) Suspend() (resume func(), err error) { return nil, errUnix }

// Processes returns nothing.
func (*Server) Processes() []int { return nil }
