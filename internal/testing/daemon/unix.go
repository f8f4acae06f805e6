//go:build unix

package daemon

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
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

// Suspend stops the processes of the server, as a machine that stalls does, until resume.
func (d *Daemon) Suspend() (resume func(), err error) {
	err = syscall.Kill(d.Process(), syscall.SIGSTOP) // it starts no others from now on
	processes := d.processes()
	for _, pid := range processes {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range processes {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}, err
}

// processes returns the process of the server, and those that it has started.
func (d *Daemon) processes() []int {
	server := d.Process()
	all := []int{server}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, _ := os.ReadFile(path) // #nosec G304 -- of /proc: "pid (name) state ppid …"
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(server) {
			all = append(all, pid)
		}
	}
	return all
}
