//go:build unix

package attempt

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// hasUnread reports whether a socket has something that nobody has read: bytes, an end or an
// error.
func hasUnread(raw syscall.RawConn) bool {
	found := false
	_ = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK) // it does not block: no socket of package net does
		found = err != syscall.EAGAIN && err != syscall.EINTR
	})
	return found
}

// readSocket reads from a socket as its own Read does, with the lock held while bytes leave it:
// they are unread, or the reader has them, and never neither.
func (w *watchedConn) readSocket(p []byte) (n int, err error) {
	failed := w.raw.Read(func(fd uintptr) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for {
			n, err = syscall.Read(int(fd), p)
			if err != syscall.EINTR {
				break
			}
		}
		w.reading = err == syscall.EAGAIN
		w.notify()
		return !w.reading
	})
	switch {
	case failed != nil:
		if wrong, ok := errors.AsType[*net.OpError](failed); ok {
			failed = wrong.Err
		}
		w.change(func() { w.reading = false })
		return 0, w.readError(failed)
	case err != nil:
		return 0, w.readError(os.NewSyscallError("read", err))
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (w *watchedConn) readError(err error) error {
	return &net.OpError{Op: "read", Net: w.LocalAddr().Network(), Source: w.LocalAddr(), Addr: w.RemoteAddr(), Err: err}
}
