//go:build !unix

package daemon

import (
	"errors"
	"syscall"
)

var errUnix = errors.New("tests start databases on Unix only")

// accountFor returns an error.
func accountFor(string, string) (*syscall.SysProcAttr, error) { return nil, errUnix }
