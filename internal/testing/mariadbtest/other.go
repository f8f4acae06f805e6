//go:build !unix

package mariadbtest

import "errors"

// A Server cannot be started on this system.
type Server struct{ Port string }

// errUnix is why.
var errUnix = errors.New("tests start MariaDB on Unix only")

// Start returns an error.
func Start(...string) (*Server, error) { return nil, errUnix }

// DSN returns nothing.
func (*Server) DSN(string) string { return "" }

// Kill does nothing.
func (*Server) Kill() {}

// Restart returns an error.
func (*Server) Restart(string) error { return errUnix }

// Stop does nothing.
func (*Server) Stop() {}

// Suspend returns an error.
func (*Server) Suspend() (resume func(), err error) { return nil, errUnix }
