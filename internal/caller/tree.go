package caller

// maxErrors bounds the errors of a tree: one whose Unwrap returns itself has no end.
const maxErrors = 1000

// Leaves returns the errors of a tree that wrap nothing or at which the walk is to stop. The tree
// is not whole if it has too many errors, or if a method of one panics.
func Leaves(err error, stop func(error) bool) (leaves []error, whole bool) {
	defer func() {
		if recover() != nil {
			whole = false
		}
	}()
	rest := []error{err}
	for seen := 0; len(rest) > 0; seen++ {
		if seen == maxErrors {
			return leaves, false
		}
		next := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		if next == nil {
			continue
		}
		var wrapped []error
		if !stop(next) {
			wrapped = unwrap(next)
		}
		if len(wrapped) == 0 {
			leaves = append(leaves, next)
		}
		rest = append(rest, wrapped...)
	}
	return leaves, true
}

// unwrap returns what an error wraps.
func unwrap(err error) []error {
	switch wrapping := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wrapping.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return wrapping.Unwrap()
	}
	return nil
}
