package strictjson

import (
	"errors"
	"io"
)

// ErrTooLarge is the error of a text over its limit.
var ErrTooLarge = errors.New("the text is too large")

const (
	byteOrderMark = "\uFEFF"

	// maxEmptyReads is how often in a row a source may return nothing.
	maxEmptyReads = 100
)

// A Reader reads a text within a limit, keeps its beginning and skips a byte-order
// mark.
type Reader struct {
	src     io.Reader
	limit   int64 // how much may still be read
	keep    int   // how much is kept, at most
	kept    []byte
	total   int64 // how much was read since the last Release
	empty   int   // reads in a row that returned nothing
	err     error
	started bool
}

// Reset makes r read src, at most limit bytes of it, and keep at most the first
// keep bytes.
func (r *Reader) Reset(src io.Reader, limit int64, keep int) {
	*r = Reader{src: src, limit: limit, keep: keep, kept: r.kept[:0], total: r.total}
}

// Release drops the source. It reports whether r has buffered so little that it is
// worth keeping for another text.
func (r *Reader) Release() bool {
	const maxReused = 64 << 10
	reusable := r.total <= maxReused && cap(r.kept) <= maxReused
	r.src, r.kept, r.total = nil, r.kept[:0], 0
	return reusable
}

// Kept returns the beginning of the text, as far as it was read. It is a part of
// the Reader, with the keys in it.
func (r *Reader) Kept() []byte { return r.kept }

// Err returns why reading ended before the end of the text, or nil.
func (r *Reader) Err() error { return r.err }

// Read implements [io.Reader].
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.src.Read(p[:min(int64(len(p)), r.limit+1)])
	if !r.started {
		n, err = r.skipMark(p, n, err)
	}
	r.started = true
	if n > 0 || err != nil {
		r.empty = 0
	} else if r.empty++; r.empty == maxEmptyReads {
		err = io.ErrNoProgress
	}
	if r.limit -= int64(n); r.limit < 0 {
		n, err = n+int(r.limit), ErrTooLarge
	}
	r.total += int64(n)
	r.kept = append(r.kept, p[:min(n, r.keep-len(r.kept))]...)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Fill reads on until as much is kept as may be, for whoever reports what is wrong
// with the text.
func (r *Reader) Fill() {
	var buffer [512]byte
	for err := error(nil); err == nil && len(r.kept) < r.keep; {
		_, err = r.Read(buffer[:])
	}
}

// skipMark removes a byte-order mark from what the first read returned. It reads on
// while that could be the beginning of one.
func (r *Reader) skipMark(p []byte, n int, err error) (int, error) {
	for tries := 0; err == nil && n < min(len(byteOrderMark), len(p)) && byteOrderMark[:n] == string(p[:n]); tries++ {
		var more int
		if more, err = r.src.Read(p[n:min(len(byteOrderMark), len(p))]); tries == maxEmptyReads {
			err = io.ErrNoProgress
		}
		n += more
	}
	if n >= len(byteOrderMark) && byteOrderMark == string(p[:len(byteOrderMark)]) {
		n = copy(p, p[len(byteOrderMark):n])
	}
	return n, err
}
