package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
)

// An orderDirectory is a [gateway.OrderGuard] of one call, with a file for each order,
// named by a hash of its identifier. The file and its name are on the disk before anything is
// sent, so that an order whose process was killed, or whose machine lost its power, counts
// as one of unknown outcome. The file is locked until the call ends, so that no other
// process sends the order meanwhile, also with --resubmit. It is never removed: another
// process could have it open, and lock a file that no directory has.
type orderDirectory struct {
	path     string
	sync     func(directory string) error // syncDirectory
	syncFile func(*os.File) error         // its Sync
	file     *os.File                     // of the order, locked
	known    *gateway.OrderRecord         // what the file had before the call
	before   int64                        // where it ended then
	failed   error                        // of End
}

func newOrderDirectory(path string) *orderDirectory {
	return &orderDirectory{path: path, sync: syncDirectory, syncFile: (*os.File).Sync}
}

// errLocked is the error of openLocked for a file that another process has locked.
var errLocked = errors.New("another process has the file of the order")

// Begin implements [gateway.OrderGuard].
func (d *orderDirectory) Begin(_ context.Context, o gateway.Order) (gateway.Lease, error) {
	file, err := openLocked(d.name(o))
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.create(filepath.Clean(d.path)); err == nil {
			file, err = openLocked(d.name(o))
		}
	}
	if errors.Is(err, errLocked) {
		return inFlight(file), nil
	}
	if err != nil {
		return gateway.Lease{}, err
	}
	state, err := d.begin(file, o)
	if err != nil || state != gateway.OrderFree {
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return gateway.Lease{}, err
	}
	d.file = file
	return gateway.Lease{State: state, Known: d.known}, nil
}

// inFlight has the request that another process sends, if its file can be read, which it
// closes. It is not that of an order which was created: the other process only looks at it.
func inFlight(file *os.File) gateway.Lease {
	lease := gateway.Lease{State: gateway.OrderInFlight}
	if file == nil {
		return lease
	}
	known, _, err := readOrder(file)
	err = errors.Join(err, file.Close())
	if err == nil && known != nil && known.Outcome == gateway.OutcomeUnknown {
		lease.Known = known
	}
	return lease
}

// begin records in the file of an order that it is sent, unless the file shows that it must
// not be.
func (d *orderDirectory) begin(file *os.File, o gateway.Order) (state gateway.OrderState, err error) {
	d.known, d.before, err = readOrder(file)
	switch {
	case err != nil:
		return gateway.OrderFree, err
	case d.known != nil && d.known.Outcome == gateway.OutcomeSucceeded:
		return gateway.OrderCreated, nil
	case d.known != nil && !o.Resubmit:
		return gateway.OrderUnknown, nil
	}
	// Always: the process that created the file may have ended before it did this.
	if err := errors.Join(d.create(filepath.Clean(d.path)), d.sync(filepath.Clean(d.path))); err != nil {
		return gateway.OrderFree, fmt.Errorf("the directory cannot be written to the disk: %w", err)
	}
	err = file.Truncate(d.before) // what follows was not written to its end
	if err == nil {
		err = d.append(file, gateway.OrderRecord{
			Request: o.Request, RequestID: o.RequestID, SentAt: time.Now().UTC(), Cause: "its process has ended without recording the outcome",
		})
	}
	if err != nil {
		err = errors.Join(err, file.Truncate(d.before)) // nothing is sent
	}
	return gateway.OrderFree, err
}

// End implements [gateway.OrderGuard]. An order that was not sent, or was refused, is as it
// was before.
func (d *orderDirectory) End(_ context.Context, _ gateway.Order, r gateway.OrderRecord) (gateway.OrderRecord, error) {
	var err error
	switch r.Outcome {
	case gateway.OutcomeNotSent, gateway.OutcomeRejected:
		err = d.file.Truncate(d.before)
		if d.known != nil {
			r = *d.known
		}
	default:
		err = d.append(d.file, r)
	}
	d.failed = errors.Join(err, d.file.Close())
	return r, d.failed
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

func (d *orderDirectory) name(o gateway.Order) string {
	sum := sha256.Sum256([]byte(o.Merchant + "\x00" + o.Key()))
	return filepath.Join(d.path, fmt.Sprintf("order-%s", hex.EncodeToString(sum[:])))
}

// An orderLine is a line of the file of an order, which has one for each call that was begun
// and one for each outcome. The last one that was written to its end counts. A file without
// one is that of an order of which nothing was sent, or whose invoice was refused.
type orderLine struct {
	Outcome    string      `json:"outcome"` // as String of a [gateway.Outcome]
	Request    requestLine `json:"request"`
	Invoice    string      `json:"invoice,omitempty"` // the bytes of the response: as JSON it would lose its spaces
	RequestID  string      `json:"requestId,omitempty"`
	SentAt     time.Time   `json:"sentAt"` // until the outcome is known, when the call began
	StatusCode int         `json:"statusCode,omitempty"`
	Body       []byte      `json:"body,omitempty"`
	Cause      string      `json:"cause,omitempty"`
}

// A requestLine is a [gateway.InvoiceRequest].
type requestLine struct {
	OrderID      string          `json:"orderId"`
	Price        decimal.Decimal `json:"price"`
	Amount       decimal.Decimal `json:"amount"`
	BaseCurrency string          `json:"baseCurrency,omitempty"`
	CoinSymbol   string          `json:"coinSymbol,omitempty"`
	NetworkName  string          `json:"networkName,omitempty"`
}

// append writes a line at the end of the file of an order, to the disk.
func (d *orderDirectory) append(file *os.File, r gateway.OrderRecord) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(orderLine{
		Outcome: r.Outcome.String(), Request: requestLine(r.Request), Invoice: string(r.Invoice), RequestID: r.RequestID,
		SentAt: r.SentAt, StatusCode: r.StatusCode, Body: r.Body, Cause: r.Cause,
	})
	if err != nil {
		return err
	}
	if _, err = file.Seek(0, io.SeekEnd); err == nil {
		_, err = file.Write(line.Bytes())
	}
	if err != nil {
		return err
	}
	return d.syncFile(file)
}

// maxLine is more than a line can have: twice the 64 KiB of a response, which is all quotes
// at worst, and what is small beside it.
const maxLine = 256 << 10

// readOrder reads the last line of the file of an order that was written to its end, which it
// returns too. Without one nothing is known. Of a line that it does not understand, the
// outcome is unknown.
func readOrder(file *os.File) (known *gateway.OrderRecord, end int64, err error) {
	info, err := os.Lstat(file.Name())
	switch {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s is not a regular file", file.Name())
	}
	start := max(0, info.Size()-2*maxLine)
	text, err := io.ReadAll(io.NewSectionReader(file, start, 2*maxLine))
	if err != nil {
		return nil, 0, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	switch {
	case len(text) == 0 && start > 0:
		return nil, 0, fmt.Errorf("%s is not the file of an order", file.Name())
	case len(text) == 0:
		return nil, 0, nil
	}
	line := text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:]
	return decodeOrder(line), start + int64(len(text)), nil
}

func decodeOrder(text []byte) *gateway.OrderRecord {
	var line orderLine
	err := json.Unmarshal(text, &line)
	switch {
	case err == nil && line.Outcome == gateway.OutcomeUnknown.String():
	case err == nil && line.Outcome == gateway.OutcomeSucceeded.String():
	default:
		return &gateway.OrderRecord{Cause: "its file is damaged"}
	}
	r := &gateway.OrderRecord{
		Request: gateway.InvoiceRequest(line.Request), RequestID: line.RequestID, SentAt: line.SentAt,
		StatusCode: line.StatusCode, Body: line.Body, Cause: line.Cause,
	}
	if r.Request.Validate() != nil {
		r.Request = gateway.InvoiceRequest{} // it was not sent
	}
	if line.Outcome == gateway.OutcomeSucceeded.String() {
		r.Outcome = gateway.OutcomeSucceeded
	}
	if line.Invoice != "" {
		r.Invoice = json.RawMessage(line.Invoice)
	}
	return r
}
