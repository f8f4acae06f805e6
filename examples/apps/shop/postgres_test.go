package main

import (
	"bufio"
	"crypto/rand"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A postgres is a PostgreSQL server of the test on a loopback port. It can
// be stopped and restarted.
type postgres struct {
	binary, dir, port string
	account           *syscall.SysProcAttr
	input             io.Closer
	cmd               *exec.Cmd
	drained           sync.WaitGroup
}

// newPostgres creates a cluster in a new directory and starts a server.
func newPostgres(t *testing.T) *postgres {
	t.Helper()
	binaries, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	require.NoError(t, err)
	if len(binaries) == 0 {
		path, err := exec.LookPath("postgres")
		require.NoError(t, err, "run ci.sh: it installs PostgreSQL")
		binaries = []string{path}
	}
	dir, err := os.MkdirTemp("", "shop-postgres-")
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, errors.Join(err, listener.Close()))
	p := &postgres{binary: binaries[len(binaries)-1], dir: dir, port: port, account: postgresAccount(t, dir)}
	t.Cleanup(func() { p.stop(); _ = os.RemoveAll(dir) })
	initdb := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(p.binary), "initdb"),
		"-D", p.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, p.account
	out, err := initdb.CombinedOutput()
	require.NoError(t, err, "%s", out)
	p.start(t)
	return p
}

func (p *postgres) data() string { return filepath.Join(p.dir, "data") }

// postgresAccount returns the account that runs the server, which refuses to
// run as root, and makes it the owner of the directory.
func postgresAccount(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("postgres")
	require.NoError(t, err)
	uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
	require.NoError(t, errors.Join(err1, err2, os.Chown(dir, int(uid), int(gid))))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// start starts the server and waits until it is ready. A shell stops the
// server when its standard input is closed, also when this process dies.
func (p *postgres) start(t *testing.T) {
	t.Helper()
	const script = `exec 3<&0; "$@" </dev/null & exec 2>/dev/null; cat <&3 >/dev/null; kill -INT $!; wait $!`
	p.cmd = exec.Command("/bin/sh", "-c", script, "sh", p.binary, "-D", p.data(), "-p", p.port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=32MB")
	p.cmd.Dir, p.cmd.SysProcAttr = "/", p.account
	p.cmd.Env = append(os.Environ(), "LC_ALL=C")
	input, err1 := p.cmd.StdinPipe()
	log, err2 := p.cmd.StderrPipe()
	require.NoError(t, errors.Join(err1, err2, p.cmd.Start()))
	p.input = input
	timer := time.AfterFunc(time.Minute, func() { _ = input.Close() })
	defer timer.Stop()
	lines, output := bufio.NewScanner(log), ""
	for lines.Scan() {
		output += lines.Text() + "\n"
		if strings.Contains(output, "ready to accept connections") {
			p.drained.Go(func() { _, _ = io.Copy(io.Discard, log) })
			return
		}
	}
	require.Fail(t, "PostgreSQL did not start", output)
}

func (p *postgres) stop() {
	if p.input == nil {
		return
	}
	_ = p.input.Close()
	p.drained.Wait()
	_ = p.cmd.Wait()
	p.input = nil
}

// database creates a new database and returns its URL.
func (p *postgres) database(t *testing.T) string {
	t.Helper()
	address := url.URL{Scheme: "postgres", User: url.User("postgres"), Host: "127.0.0.1:" + p.port, Path: "/postgres", RawQuery: "sslmode=disable"}
	db, err := sql.Open("pgx", address.String())
	require.NoError(t, err)
	defer db.Close()
	name := "shop_" + strings.ToLower(rand.Text())
	_, err = db.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	address.Path = "/" + name
	return address.String()
}
