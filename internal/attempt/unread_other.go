//go:build !unix

package attempt

import "syscall"

// hasUnread is false: where a socket cannot be asked, only what was read is known.
func hasUnread(syscall.RawConn) bool { return false }

func (w *watchedConn) readSocket(p []byte) (int, error) { return w.readOther(p) }
