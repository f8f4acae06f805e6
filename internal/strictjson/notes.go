package strictjson

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Kind is how a text differs from the tags it is read by.
type Kind int8

// Kinds of a [Note].
const (
	UnknownField    Kind = iota // a member that no tag names
	UnknownValue                // a text that its type does not know
	UnknownShape                // a value that cannot be read: an error, or a record that was left out
	Mismatch                    // an identifier that does not equal another's
	UnexpectedValue             // a value of another form than is documented, which was accepted
)

// A Note is a place where a text differs.
type Note struct {
	Kind    Kind
	Pointer string // JSON pointer, at most 1 KiB
	Reason  string // why a value could not be read; empty for one that was
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

func (n *Notes) add(kind Kind, pointer, reason string) {
	if n == nil || n.isFull() {
		return
	}
	place := strconv.Itoa(int(kind)) + WithoutIndices(pointer)
	if n.seen[place] {
		return
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[place] = true
	n.all = append(n.all, Note{kind, pointer, reason})
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
		d.Notes.add(kind, d.place(), "")
	}
}

// noteUnread notes the value that was read last, and cannot be understood.
func (d *Decoder) noteUnread(value jsontext.Value, err error) {
	if d.Notes != nil && !d.Notes.isFull() && d.err == nil {
		e := Error{Value: shown(value, d.Redactor), Err: err}
		d.Notes.add(UnexpectedValue, d.place(), e.Reason())
	}
}

// noteMember notes a member of the object that was read last.
func (d *Decoder) noteMember(kind Kind, name string) {
	if d.Notes != nil && !d.Notes.isFull() && d.err == nil {
		d.Notes.add(kind, d.placeOf(name), "")
	}
}

// NoteError notes the error that has ended the reading, unless it is one of syntax.
func (d *Decoder) NoteError() {
	switch {
	case d.err == nil || d.err.Syntax:
	case errors.Is(d.err.Err, ErrMismatch):
		d.Notes.add(Mismatch, d.err.Pointer, d.err.Reason())
	default:
		d.Notes.add(UnknownShape, d.err.Pointer, d.err.Reason())
	}
}
