//go:build unix

// Package postgrestest starts PostgreSQL servers for tests.
package postgrestest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Server is a PostgreSQL server with a new cluster, on a loopback port. It stops, and its
// files are removed, when it is stopped or this process ends, however it ends. It is safe
// for concurrent use.
type Server struct {
	path, dir, port string
	account         *syscall.SysProcAttr
	settings        []string

	mu   sync.Mutex
	halt func(signal string) // nil if it has been stopped
}

// Start returns a server with settings, such as fsync=off, besides the defaults of PostgreSQL.
// It is that of the newest of Debian's packages, or else the one in the PATH. The account
// postgres runs it if this process is root's, as which it refuses to run.
func Start(settings ...string) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get install postgresql)", err)
	}
	s := &Server{path: filepath.Join(bin, "postgres"), settings: settings}
	if s.dir, err = os.MkdirTemp("", "postgres-"); err != nil {
		return nil, err
	}
	if s.account, err = accountFor(s.dir); err == nil {
		err = s.initdb(filepath.Join(bin, "initdb"))
	}
	if err == nil {
		err = s.choosePort()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

// Replica returns a server that follows this one, and accepts no writes until it is promoted
// (SELECT pg_promote()).
func (s *Server) Replica() (*Server, error) {
	dir, err := os.MkdirTemp("", "postgres-")
	if err != nil {
		return nil, err
	}
	r := &Server{path: s.path, dir: dir, settings: s.settings}
	if r.account, err = accountFor(dir); err == nil {
		copying := exec.Command(filepath.Join(filepath.Dir(s.path), "pg_basebackup"), // #nosec G204 -- of binaries
			"-D", r.data(), "-R", "-h", "127.0.0.1", "-p", s.port, "-U", "postgres", "-c", "fast", "--no-sync")
		copying.Dir, copying.SysProcAttr = "/", r.account
		var out []byte
		if out, err = copying.CombinedOutput(); err != nil {
			err = fmt.Errorf("pg_basebackup: %w\n%s", err, out)
		}
	}
	if err == nil {
		err = r.choosePort()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

// Kill ends the server without a checkpoint, as a crash does. Stop removes its files.
func (s *Server) Kill() { s.stop("QUIT") }

// Port returns the port of 127.0.0.1 on which the server listens.
func (s *Server) Port() string { return s.port }

// choosePort starts the server on a port that no other process has. The system gives none of
// them to a client while the server restarts: those begin at 32768.
func (s *Server) choosePort() (err error) {
	for range 10 {
		s.port = strconv.Itoa(20000 + rand.IntN(12000)) // #nosec G404 -- any port will do
		if err = s.run(); err == nil {
			break
		}
	}
	return err
}

// DSN returns the data source name of a database. Those of a new cluster are postgres,
// template0 and template1.
func (s *Server) DSN(database string) string {
	return "postgres://postgres@127.0.0.1:" + s.port + "/" + database + "?sslmode=disable"
}

// Restart ends the server by a signal, INT or QUIT, and starts it on the same data and port.
// QUIT ends it without a checkpoint, as a crash does.
func (s *Server) Restart(signal string) error {
	s.stop(signal)
	return s.run()
}

// Stop ends the server and removes its files.
func (s *Server) Stop() {
	s.stop("")
	_ = os.RemoveAll(s.dir)
}

func (s *Server) stop(signal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halt != nil {
		s.halt(signal)
		s.halt = nil
	}
}

// Suspend stops the processes of the server, as a machine that stalls does, until resume.
func (s *Server) Suspend() (resume func(), err error) {
	first, err := s.first()
	if err != nil {
		return nil, err
	}
	err = syscall.Kill(first, syscall.SIGSTOP) // it starts no others from now on
	processes, err2 := s.Processes()
	for _, pid := range processes {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range processes {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}, errors.Join(err, err2)
}

// Processes returns the processes of the server.
func (s *Server) Processes() ([]int, error) {
	first, err := s.first()
	if err != nil {
		return nil, err
	}
	return append(childrenOf(first), first), nil
}

// first returns the process that has started the others.
func (s *Server) first() (pid int, err error) {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}

// childrenOf returns the processes that a process has started.
func childrenOf(parent int) (children []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, _ := os.ReadFile(path) // #nosec G304 -- of /proc: "pid (name) state ppid …"
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			children = append(children, pid)
		}
	}
	return children
}

func binaries() (dir string, err error) {
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

// accountFor returns the account for the server, and makes it the owner of the directory. The
// server has a process group of its own: what a terminal sends to this one does not end it
// before its files are removed.
func accountFor(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{Setpgid: true}, nil
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
	return &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) initdb(path string) error {
	args := []string{"-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"}
	cmd := exec.Command(path, args...) // #nosec G204 -- the initdb of binaries
	cmd.Dir, cmd.SysProcAttr = "/", s.account
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", s.dir, err, out)
	}
	return nil
}

// script runs the server until it reads a signal for it. At the end of its input, which is
// when this process ends, it removes the files too.
const script = `dir=$1; shift; exec 3<&0; "$@" </dev/null & exec 2>/dev/null
read -r signal <&3; kill -"${signal:-INT}" $!; wait $!; [ -n "$signal" ] || rm -rf "$dir"`

// run starts the server and waits until it logs that it is ready.
func (s *Server) run() error {
	cmd := s.command()
	input, err1 := cmd.StdinPipe()
	log, err2 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return err
	}
	var drained sync.WaitGroup
	halt := func(signal string) {
		if signal != "" {
			_, _ = io.WriteString(input, signal+"\n")
		}
		_ = input.Close()
		drained.Wait()
		_ = cmd.Wait()
	}
	overdue := time.AfterFunc(time.Minute, func() { _ = input.Close() })
	defer overdue.Stop()
	lines, logged := bufio.NewScanner(log), ""
	for lines.Scan() {
		logged += lines.Text() + "\n"
		if strings.Contains(logged, "ready to accept ") { // "connections", or of a replica "read-only connections"
			drained.Go(func() { _, _ = io.Copy(io.Discard, log) })
			s.mu.Lock()
			defer s.mu.Unlock()
			s.halt = halt
			return nil
		}
	}
	halt("INT")
	return fmt.Errorf("PostgreSQL has not started:\n%s", logged)
}

func (s *Server) command() *exec.Cmd {
	args := []string{"-c", script, "sh", s.dir, s.path, "-D", s.data(), "-p", s.port}
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories="}, s.settings...) {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command("/bin/sh", args...) // #nosec G204 -- a test chooses the settings
	cmd.Dir, cmd.SysProcAttr = "/", s.account
	cmd.Env = append(os.Environ(), "LC_ALL=C") // the language of the log
	return cmd
}
