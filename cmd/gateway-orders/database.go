package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/database"
	"github.com/cryptogw/gateway/sqlguard"
)

// open opens the table, which must be there.
func (s *session) open(ctx context.Context) error {
	if err := s.connect(false); err != nil {
		return err
	}
	version, err := s.guard.SchemaVersion(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the database cannot be used: %w", err)
	case version == 0:
		return errors.New("the database has no such table: name another with --table, or create it with gateway-orders migrate")
	}
	return nil
}

// connect makes the guard over the database. Only create lets SQLite create a file.
func (s *session) connect(create bool) error {
	name, err := s.database()
	if err != nil {
		return err
	}
	db, dialect, err := database.Open(name, create)
	if err != nil {
		return err
	}
	s.dialect = dialect
	db.SetMaxOpenConns(2)
	if s.guard, err = sqlguard.New(db, sqlguard.WithTable(s.table)); err != nil {
		return errors.Join(&cli.UsageError{Text: "--table: " + err.Error()}, db.Close())
	}
	s.close = db.Close
	return nil
}

// input reads at most a number of bytes of a file, or of stdin for "-".
func (s *session) input(name string, most int64) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(s.In, most))
	}
	return readFile(name, most)
}

// readFile reads at most a number of bytes of a file.
func readFile(name string, most int64) ([]byte, error) {
	file, err := os.Open(name) // #nosec G304 -- whoever runs the command chooses the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, most))
}

// maxURL is the largest size of the URL of a database, in bytes.
const maxURL = 64 << 10

// database returns the URL of --db, --db-file or the environment.
func (s *session) database() (string, error) {
	switch {
	case s.db != "" && s.dbFile != "":
		return "", &cli.UsageError{Text: "give --db or --db-file, not both"}
	case s.db != "":
		if database.HasPassword(s.db) {
			return "", &cli.UsageError{Text: "--db takes no password, because other users of the machine can read it: put the URL into " +
				envDB + " or a file for --db-file, or the password into PGPASSWORD or ~/.pgpass"}
		}
		return s.db, nil
	case s.dbFile != "":
		text, err := readFile(s.dbFile, maxURL)
		if err != nil {
			return "", fmt.Errorf("--db-file: %w", cli.Reason(err))
		}
		return strings.TrimSpace(string(text)), nil
	case os.Getenv(envDB) != "":
		return strings.TrimSpace(os.Getenv(envDB)), nil
	default:
		return "", &cli.UsageError{Text: "no database is named: set " + envDB + ", or give --db-file or --db: " + database.Forms}
	}
}
