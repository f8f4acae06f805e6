package rivergateway

import (
	"bufio"
	"context"
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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/cryptogw/gateway/sqlguard"
)

// A postgres is a server of the tests, on a loopback port. It stops with this process.
type postgres struct {
	path, dir, port string
	account         *syscall.SysProcAttr

	mu   sync.Mutex
	halt func(signal string)
}

// The server that all tests share. The first test that needs it starts it.
var shared struct {
	sync.Mutex
	server    *postgres
	err       error
	databases atomic.Int64
}

const template = "with_tables"

// sharedPostgres returns the server, in which the database template has the tables.
func sharedPostgres(t *testing.T) *postgres {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = startPostgres()
		if shared.err == nil {
			shared.err = errors.Join(shared.server.create(template, "template1"), shared.server.migrate(template))
		}
	}
	if shared.err != nil {
		t.Fatalf("no PostgreSQL server: %v\napt-get install postgresql", shared.err)
	}
	return shared.server
}

func stopPostgres() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.stop("INT")
		_ = os.RemoveAll(shared.server.dir)
	}
}

// newDatabase returns the DSN of a new database with the tables.
func newDatabase(t *testing.T) string {
	t.Helper()
	server, name := sharedPostgres(t), fmt.Sprintf("test_%d", shared.databases.Add(1))
	shared.Lock() // a template must not be in use
	defer shared.Unlock()
	if err := server.create(name, template); err != nil {
		t.Fatal(err)
	}
	return server.dsn(name)
}

func (p *postgres) dsn(database string) string {
	return "postgres://postgres@127.0.0.1:" + p.port + "/" + database + "?sslmode=disable"
}

func (p *postgres) create(name, template string) error {
	return p.exec("postgres", `CREATE DATABASE `+name+` TEMPLATE `+template)
}

func (p *postgres) exec(database, text string) error {
	conn, err := pgx.Connect(context.Background(), p.dsn(database))
	if err != nil {
		return err
	}
	_, err = conn.Exec(context.Background(), text)
	return errors.Join(err, conn.Close(context.Background()))
}

// migrate makes the tables of River, of the guard and of a merchant.
func (p *postgres) migrate(database string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, p.dsn(database))
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	guard, err := sqlguard.New(db)
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, `CREATE TABLE told (order_id text NOT NULL, outcome text NOT NULL, response boolean NOT NULL)`)
	return errors.Join(err, guard.CreateTable(ctx))
}

// startPostgres creates a cluster in a new directory and starts its server.
func startPostgres() (*postgres, error) {
	bin, err := postgresBinaries()
	if err != nil {
		return nil, err
	}
	p := &postgres{path: filepath.Join(bin, "postgres")}
	if p.dir, err = os.MkdirTemp("", "rivergateway-postgres-"); err != nil {
		return nil, err
	}
	if p.account, err = postgresAccount(p.dir); err != nil {
		return nil, err
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", p.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = p.dir, p.account
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for range 5 { // another process may take the port
		if p.port, err = freePort(); err != nil {
			break
		}
		if err = p.run(); err == nil {
			return p, nil
		}
	}
	return nil, err
}

func (p *postgres) data() string { return filepath.Join(p.dir, "data") }

// restart ends the server, as a signal does, and starts it on the same data. QUIT ends it
// without a checkpoint, as a crash does.
func (p *postgres) restart(signal string) error {
	p.stop(signal)
	return p.run()
}

func (p *postgres) stop(signal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halt != nil {
		p.halt(signal)
		p.halt = nil
	}
}

// run starts the server and waits until it logs that it is ready. A shell runs the
// server, and stops it when it reads a signal or the end of its input, which is when this
// process is killed.
func (p *postgres) run() error {
	const script = `exec 3<&0; "$@" </dev/null & exec 2>/dev/null; read -r signal <&3; kill -"${signal:-INT}" $!; wait $!`
	cmd := exec.Command("/bin/sh", "-c", script, "sh", p.path, "-D", p.data(), "-p", p.port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=64MB",
		"-c", "max_connections=300")
	cmd.Dir, cmd.SysProcAttr = "/", p.account
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	input, err1 := cmd.StdinPipe()
	log, err2 := cmd.StderrPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var drained sync.WaitGroup
	halt := func(signal string) {
		_, _ = io.WriteString(input, signal+"\n")
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
			p.mu.Lock()
			p.halt = halt
			p.mu.Unlock()
			return nil
		}
	}
	halt("INT")
	return fmt.Errorf("postgres did not start:\n%s", logged)
}

// postgresBinaries finds the newest server that Debian's packages have installed, or the
// one in the PATH.
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

// postgresAccount returns the account for the server, which refuses to run as root, and
// makes that account the owner of the directory.
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
