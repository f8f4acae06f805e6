package doc

import (
	"errors"
	"strconv"
	"strings"
)

// A Kind says what a [Note] is about.
type Kind int8

// Kinds of a [Note].
const (
	UnknownField    Kind = iota // a member that no tag names
	UnknownValue                // a text that its type does not know
	UnexpectedValue             // a value of another form than is documented, which was accepted
	Mismatch                    // an identifier that does not equal another
	Unreadable                  // a value that cannot be read, which is an error
	Skipped                     // a record, or a part of one, that cannot be read and was skipped
	Lacking                     // a needless member that is missing, or cannot be read
)

// A Note is a place where a text differs from the documented interface. Its Err says why a value could not
// be read; it is nil if the value was read.
type Note struct {
	Kind Kind
	Error
	Again  bool // a note of this kind is about the same place in an earlier element of the array
	Record Node // that was skipped
}

const (
	// MaxSkipped is how many skipped records are noted.
	MaxSkipped = 64

	maxNotes = 64 // of the other kinds together
)

// Notes returns the notes in the order in which they were made. They are valid until the next Parse.
func (d *Doc) Notes() []Note { return d.notes }

// Note notes a value, in the elements of an array only once.
func (n Node) Note(kind Kind) { n.fault(nil).note(kind) }

// note notes a value that was read differently, or not at all.
func (f *fault) note(kind Kind) {
	d := f.at.doc
	if d != nil && !d.isFull() && d.isNew(kind, f.path(false)) {
		d.notes = append(d.notes, Note{Kind: kind, Error: *f.located()})
	}
}

func (d *Doc) isFull() bool { return len(d.notes)-d.skipped == maxNotes }

// NoteError notes an error that has ended the reading, unless it is one of syntax.
func (d *Doc) NoteError(e *Error) {
	kind := Unreadable
	if e == nil || e.Syntax || d.isFull() {
		return
	}
	if errors.Is(e.Err, ErrMismatch) {
		kind = Mismatch
	}
	if d.isNew(kind, e.Pointer) {
		d.notes = append(d.notes, Note{Kind: kind, Error: *e})
	}
}

// Skip notes that the record n is skipped because of a value in it.
func (n Node) Skip(at Node, wrong error) { n.skip(at.fault(wrong)) }

func (n Node) skip(wrong *fault) {
	d := n.doc
	if d.skipped == MaxSkipped {
		return
	}
	d.skipped++
	located := wrong.located()
	again := !d.isNew(Unreadable, located.Pointer)
	d.notes = append(d.notes, Note{Kind: Skipped, Error: *located, Record: n, Again: again})
}

// FirstSkipped returns the error of the first record that was skipped, or nil.
func (d *Doc) FirstSkipped() *Error {
	for i := range d.notes {
		if d.notes[i].Kind == Skipped {
			return &d.notes[i].Error
		}
	}
	return nil
}

// isNew reports whether no note of a kind was made of a place in any element of an array.
func (d *Doc) isNew(kind Kind, pointer string) bool {
	place := strconv.Itoa(int(kind)) + WithoutIndices(pointer)
	if d.seen[place] {
		return false
	}
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.seen[place] = true
	return true
}

// WithoutIndices returns a pointer to the same place in every element of an array.
func WithoutIndices(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, token := range tokens {
		if token != "" && strings.Trim(token, "0123456789") == "" {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, "/")
}
