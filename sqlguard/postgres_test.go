package sqlguard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The server that all tests share. The first test that needs it starts it.
var server struct {
	sync.Mutex
	dsn  string
	data string // its directory
	err  error
	stop func()
}

// postgresDSN returns the DSN of PostgreSQL: SQLGUARD_POSTGRES, or that of a
// server that the tests start.
func postgresDSN(t *testing.T) string {
	t.Helper()
	if dsn := os.Getenv("SQLGUARD_POSTGRES"); dsn != "" {
		return dsn
	}
	server.Lock()
	defer server.Unlock()
	if server.dsn == "" && server.err == nil {
		server.dsn, server.data, server.stop, server.err = startPostgres("fsync=off", "shared_buffers=32MB")
	}
	if server.err != nil {
		t.Fatalf("no PostgreSQL server: %v\napt-get install postgresql, or set SQLGUARD_POSTGRES to the DSN of one", server.err)
	}
	return server.dsn
}

func stopPostgres() {
	server.Lock()
	defer server.Unlock()
	if server.stop != nil {
		server.stop()
	}
}

// startPostgres creates a cluster in a new directory and starts its server, which has these
// settings besides its defaults, listens on a loopback port and stops with this process.
func startPostgres(settings ...string) (dsn, data string, stop func(), err error) {
	bin, err := postgresBinaries()
	if err != nil {
		return "", "", nil, err
	}
	dir, err := os.MkdirTemp("", "sqlguard-postgres-")
	if err != nil {
		return "", "", nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	account, err := postgresAccount(dir)
	if err != nil {
		return "", "", remove, err
	}
	data = filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, account
	if out, err := initdb.CombinedOutput(); err != nil {
		return "", "", remove, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for range 5 { // another process may take the port
		var port string
		var halt func()
		if port, err = freePort(); err != nil {
			break
		}
		if halt, err = runPostgres(filepath.Join(bin, "postgres"), data, port, account, settings); err == nil {
			dsn = "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable"
			return dsn, data, func() { halt(); remove() }, nil
		}
	}
	return "", "", remove, err
}

// suspendPostgres stops the processes of the server that the tests have started, as a
// machine that stalls does. It returns false if the tests did not start it.
func suspendPostgres() (resume func(), ok bool, err error) {
	server.Lock()
	defer server.Unlock()
	if server.data == "" {
		return nil, false, nil
	}
	postmaster, err := postmasterOf(server.data)
	if err != nil {
		return nil, true, err
	}
	// It starts no others once it is stopped itself.
	err = syscall.Kill(postmaster, syscall.SIGSTOP)
	processes := append(childrenOf(postmaster), postmaster)
	for _, pid := range processes {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range processes {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}, true, err
}

// postmasterOf returns the first process of the server with that directory.
func postmasterOf(data string) (pid int, err error) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(strings.TrimSpace(first))
}

// childrenOf returns the processes that a process has started.
func childrenOf(parent int) (children []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, _ := os.ReadFile(path) // "pid (name) state ppid …"
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			children = append(children, pid)
		}
	}
	return children
}

// postgresBinaries finds the newest server that Debian's packages have
// installed, or the one in the PATH.
func postgresBinaries() (dir string, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		path, err := exec.LookPath("postgres")
		return filepath.Dir(path), err
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

// postgresAccount returns the account for the server, which refuses to run as
// root, and makes that account the owner of the directory.
func postgresAccount(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(err1, err2, os.Chown(dir, int(uid), int(gid))); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// runPostgres starts a server and waits until it logs that it is ready. A shell
// runs the server and stops it when its own input ends, which is when this process
// closes it or is killed.
func runPostgres(path, data, port string, account *syscall.SysProcAttr, settings []string) (halt func(), err error) {
	const script = `exec 3<&0; "$@" </dev/null & exec 2>/dev/null; cat <&3 >/dev/null; kill -INT $!; wait $!`
	args := []string{"-c", script, "sh", path, "-D", data, "-p", port}
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories="}, settings...) {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir, cmd.SysProcAttr = "/", account
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	input, err1 := cmd.StdinPipe()
	log, err2 := cmd.StderrPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var drained sync.WaitGroup
	halt = func() {
		_ = input.Close()
		drained.Wait()
		_ = cmd.Wait()
	}
	overdue := time.AfterFunc(time.Minute, func() { _ = input.Close() })
	defer overdue.Stop()
	lines, logged := bufio.NewScanner(log), ""
	for lines.Scan() {
		logged += lines.Text() + "\n"
		if strings.Contains(logged, "ready to accept connections") {
			drained.Go(func() { _, _ = io.Copy(io.Discard, log) })
			return halt, nil
		}
	}
	halt()
	return nil, fmt.Errorf("postgres did not start:\n%s", logged)
}
