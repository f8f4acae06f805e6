package gateway

import "io"

// A body reads an answer within a limit, keeps its beginning, and passes over
// a byte-order mark.
type body struct {
	src     io.Reader
	limit   int64 // how much may still be read
	keep    int   // how much is kept, at most
	head    []byte
	read    int64 // how much was, of all answers since it was given back
	empty   int   // reads in a row that gave nothing
	err     error // why reading ended before the end
	started bool
}

// mostEmptyReads is how often in a row a body may give nothing.
const mostEmptyReads = 100

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.src.Read(p[:min(int64(len(p)), b.limit+1)])
	if !b.started {
		n, err = b.skipMark(p, n, err)
	}
	b.started = true
	if n > 0 || err != nil {
		b.empty = 0
	} else if b.empty++; b.empty == mostEmptyReads {
		err = io.ErrNoProgress
	}
	if b.limit -= int64(n); b.limit < 0 {
		n, err = n+int(b.limit), ErrResponseTooLarge
	}
	b.read += int64(n)
	b.head = append(b.head, p[:min(n, b.keep-len(b.head))]...)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// fill reads on until as much is kept as can be, for whoever has to say what
// is wrong with the answer.
func (b *body) fill() {
	var buffer [512]byte
	for err := error(nil); err == nil && len(b.head) < b.keep; {
		_, err = b.Read(buffer[:])
	}
}

// skipMark removes a byte-order mark at the start of what the first read gave,
// reading on while that could be the beginning of one.
func (b *body) skipMark(p []byte, n int, err error) (int, error) {
	const mark = "\uFEFF"
	for tries := 0; err == nil && n < min(len(mark), len(p)) && mark[:n] == string(p[:n]); tries++ {
		var more int
		if more, err = b.src.Read(p[n:min(len(mark), len(p))]); tries == mostEmptyReads {
			err = io.ErrNoProgress
		}
		n += more
	}
	if n >= len(mark) && mark == string(p[:len(mark)]) {
		n = copy(p, p[len(mark):n])
	}
	return n, err
}
