package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cryptogw/gateway"
)

// An orderDirectory is a [gateway.OrderGuard] of one call, with a file for each order,
// named by a hash of its identifier. The file and its name are on the disk before anything is
// sent, so that an order whose process was killed, or whose machine lost its power, counts
// as one of unknown outcome. The file is locked until the call ends, so that no other
// process sends the order meanwhile, also with -resubmit. It is never removed: another
// process could have it open, and lock a file that no directory has.
type orderDirectory struct {
	path    string
	sync    func(directory string) error // syncDirectory
	file    *os.File                     // of the order, locked
	earlier bool                         // whether an earlier run left the outcome of the order unknown
}

func newOrderDirectory(path string) *orderDirectory {
	return &orderDirectory{path: path, sync: syncDirectory}
}

// Contents of the file of an order. An empty file is one of which nothing was sent, or
// whose invoice was refused.
const (
	orderSent    = "sent, outcome unknown\n"
	orderCreated = "created\n" // shorter than orderSent, which it overwrites
)

// Begin implements [gateway.OrderGuard].
func (d *orderDirectory) Begin(_ context.Context, orderID string, resubmit bool) error {
	if err := d.create(filepath.Clean(d.path)); err != nil {
		return err
	}
	file, err := openLocked(d.name(orderID))
	if err != nil {
		return err
	}
	if err := d.begin(file, resubmit); err != nil {
		return errors.Join(err, file.Close())
	}
	d.file = file
	return nil
}

// create creates a directory with its parents, unless it exists, and syncs those that hold
// a new one. One that exists may be new too: the process that created it may have ended, or
// failed, before it did this.
func (d *orderDirectory) create(path string) error {
	parent := filepath.Dir(path)
	_, err := os.Stat(path)
	switch {
	case err == nil && parent != path:
		if err = d.sync(parent); errors.Is(err, fs.ErrPermission) {
			err = nil // whoever cannot read the parent has hardly created the directory in it
		}
		return err
	case !errors.Is(err, fs.ErrNotExist) || parent == path:
		return err
	}
	if err := d.create(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.sync(parent)
}

// begin records in the file of an order that it is sent, unless the file shows that it must
// not be.
func (d *orderDirectory) begin(file *os.File, resubmit bool) error {
	switch info, err := os.Lstat(file.Name()); {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", file.Name())
	}
	content, err := io.ReadAll(io.LimitReader(file, int64(len(orderSent))))
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(string(content), orderCreated): // not equal: the process may have been killed before it truncated the file
		return gateway.ErrOrderCreated
	case len(content) > 0 && !resubmit:
		return gateway.ErrOrderOutcomeUnknown
	}
	// Always: the process that created the file may have ended before it did this.
	if err := d.sync(d.path); err != nil {
		return fmt.Errorf("the directory cannot be written to the disk: %w", err)
	}
	d.earlier = len(content) > 0
	if d.earlier {
		return file.Sync()
	}
	_, err = file.WriteAt([]byte(orderSent), 0)
	if err = errors.Join(err, file.Sync()); err != nil {
		return errors.Join(err, file.Truncate(0)) // nothing is sent
	}
	return nil
}

// End implements [gateway.OrderGuard]. What became of this run does not resolve the
// unknown outcome of an earlier one, except that the invoice was created.
func (d *orderDirectory) End(_ context.Context, _ string, outcome gateway.Outcome) (err error) {
	switch {
	case outcome == gateway.OutcomeSucceeded:
		if _, err = d.file.WriteAt([]byte(orderCreated), 0); err == nil {
			err = errors.Join(d.file.Truncate(int64(len(orderCreated))), d.file.Sync())
		}
	case outcome == gateway.OutcomeUnknown || d.earlier: // as the file has it
	default:
		err = d.file.Truncate(0)
	}
	return errors.Join(err, d.file.Close())
}

func (d *orderDirectory) name(orderID string) string {
	sum := sha256.Sum256([]byte(orderID))
	return filepath.Join(d.path, fmt.Sprintf("order-%s", hex.EncodeToString(sum[:])))
}
