//go:build unix

package daemon

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// accountFor returns the account for a server, and makes it the owner of the directory. The
// server has a process group of its own: what a terminal sends to this one does not end it
// before its files are removed.
func accountFor(name, dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{Setpgid: true}, nil
	}
	account, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(err1, err2, os.Chown(dir, int(uid), int(gid))); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}
