package suite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cryptogw/gateway/internal/documented/fields"
)

// check returns what is wrong with a record. It may have more members than its table,
// and what its identifiers are of is a case of its own.
func check(value any, of *fields.Table) error {
	record, ok := value.(map[string]any)
	if !ok {
		return errors.New("is not a record")
	}
	var wrong []error
	of.Check(record, func(d fields.Difference) {
		if d.Kind != fields.UnknownField && d.Kind != fields.Mismatch {
			wrong = append(wrong, fmt.Errorf("%s: %s %s (%s)", strings.Join(d.Path, "."), d.Kind, d.Detail, d.Statement))
		}
	})
	return errors.Join(wrong...)
}
