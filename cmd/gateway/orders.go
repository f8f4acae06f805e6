package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cryptogw/gateway"
)

// An orderDirectory is a [gateway.OrderGuard] with a file for each order, named by a
// hash of its identifier. A file is created before anything is sent, so that an order
// whose process was killed counts as one of unknown outcome.
type orderDirectory struct {
	path    string
	earlier bool // whether an earlier run left the outcome of the order unknown
}

// Contents of the file of an order.
const (
	orderSent    = "sent, outcome unknown\n"
	orderCreated = "created\n"
)

// Begin implements [gateway.OrderGuard].
func (d *orderDirectory) Begin(_ context.Context, orderID string, resubmit bool) error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	err := d.create(orderID)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	content, err := os.ReadFile(d.file(orderID)) // #nosec G304 -- the user chooses the directory
	switch {
	case err != nil:
		return err
	case string(content) == orderCreated:
		return gateway.ErrOrderCreated
	case !resubmit:
		return gateway.ErrOrderOutcomeUnknown
	default:
		d.earlier = true
		return nil
	}
}

// create creates the file of an order. It fails if there is one.
func (d *orderDirectory) create(orderID string) error {
	file, err := os.OpenFile(d.file(orderID), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the user chooses the directory
	if err != nil {
		return err
	}
	_, err = file.WriteString(orderSent)
	return errors.Join(err, file.Sync(), file.Close())
}

// End implements [gateway.OrderGuard]. What became of this run does not resolve the
// unknown outcome of an earlier one, except that the invoice was created.
func (d *orderDirectory) End(_ context.Context, orderID string, outcome gateway.Outcome) error {
	switch {
	case outcome == gateway.OutcomeSucceeded:
		return os.WriteFile(d.file(orderID), []byte(orderCreated), 0o600)
	case outcome == gateway.OutcomeUnknown || d.earlier:
		return nil // as the file has it
	default:
		return os.Remove(d.file(orderID))
	}
}

func (d *orderDirectory) file(orderID string) string {
	sum := sha256.Sum256([]byte(orderID))
	return filepath.Join(d.path, fmt.Sprintf("order-%s", hex.EncodeToString(sum[:])))
}
