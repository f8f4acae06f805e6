package strictjson

import (
	"errors"
	"strconv"
	"strings"
)

// A Kind is how a text differs from the tags it is read by.
type Kind int8

// Kinds of a [Note].
const (
	UnknownField    Kind = iota // a member that no tag names
	UnknownValue                // a text that its type does not know
	UnknownShape                // a value that cannot be read: an error
	Mismatch                    // an identifier that does not equal another's
	UnexpectedValue             // a value of another form than is documented, which was accepted
)

// A Note is a place where a text differs.
type Note struct {
	Kind    Kind
	Pointer string // JSON pointer, at most 1 KiB
}

// maxNotes is how many notes [Notes] collects.
const maxNotes = 64

// Notes collects what differs in one text. What recurs in the elements of an array
// is collected once, where it is met first. The zero value is ready for use; a nil
// one collects nothing.
type Notes struct {
	all  []Note
	seen map[string]bool
}

// All returns the notes in the order of the text.
func (n *Notes) All() []Note {
	if n == nil {
		return nil
	}
	return n.all
}

func (n *Notes) isFull() bool { return len(n.all) == maxNotes }

func (n *Notes) add(kind Kind, pointer string) {
	place := strconv.Itoa(int(kind)) + WithoutIndices(pointer)
	if n.isFull() || n.seen[place] {
		return
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[place] = true
	n.all = append(n.all, Note{kind, pointer})
}

// WithoutIndices returns a pointer to the same place in every element of an array.
func WithoutIndices(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, token := range tokens {
		if _, err := strconv.ParseUint(token, 10, 64); err == nil {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, "/")
}

// Note notes the value that was read last, or the member whose name was.
func (d *Decoder) Note(kind Kind) {
	if d.Notes != nil && !d.Notes.isFull() && d.err == nil {
		d.Notes.add(kind, d.place())
	}
}

// noteMember notes a member of the object that was read last.
func (d *Decoder) noteMember(kind Kind, name string) {
	if d.Notes != nil && !d.Notes.isFull() && d.err == nil {
		d.Notes.add(kind, d.placeOf(name))
	}
}

// NoteError notes the error that has ended the reading, unless it is one of syntax.
func (d *Decoder) NoteError() {
	switch {
	case d.Notes == nil || d.err == nil || d.err.Syntax:
	case errors.Is(d.err.Err, ErrMismatch):
		d.Notes.add(Mismatch, d.err.Pointer)
	default:
		d.Notes.add(UnknownShape, d.err.Pointer)
	}
}
