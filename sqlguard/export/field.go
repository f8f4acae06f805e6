package export

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/sqlguard"
)

// A field is a column that is named.
type field struct {
	column   string
	set      func(row *sqlguard.StatementRow, text string) (reason string)
	bare     func(text string) bool // whether what is not a text in JSON is as good as one
	wantText string                 // the reason if it is not
}

const maxID = 1024 // as the client sends it

func idField(column string, of func(*sqlguard.StatementRow) *string) field {
	return field{
		column: column,
		set: func(row *sqlguard.StatementRow, text string) string {
			*of(row) = text
			return checkID(text)
		},
		bare:     regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`).MatchString,
		wantText: "must be a text, or a whole number of at most 15 digits: export ids as texts",
	}
}

// checkID returns what is wrong with an id, or "".
func checkID(id string) string {
	control := func(c rune) bool { return unicode.IsControl(c) }
	switch {
	case len(id) > maxID:
		return "is longer than 1,024 bytes: name the column of the ids"
	case strings.TrimFunc(id, isInvisible) != id:
		return fmt.Sprintf("is %+.80q, with a space or a character of no width at an end: export it without", id)
	case strings.ContainsFunc(id, control):
		return fmt.Sprintf("is %+.80q, with a control character: export it without", id)
	case scientific.MatchString(id):
		return fmt.Sprintf("is %.80q, as a spreadsheet writes a number that is an id: export it as text", id)
	}
	return ""
}

var scientific = regexp.MustCompile(`^[0-9]([.,][0-9]+)?[Ee]\+[0-9]+$`)

// isInvisible reports whether a character is not seen at the end of a text.
func isInvisible(c rune) bool {
	return unicode.IsSpace(c) || unicode.In(c, unicode.Z, unicode.Cf) || c == '\u115F' || c == '\u2800' || c == '\u3164'
}

// A time with its zone. -00:00 says that the zone is not known.
var instant = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|\+[0-9]{2}:[0-9]{2}|-[0-9]{2}:[0-9]{2})$`)

func timeField(column string) field {
	const want = "must be a time with its zone, such as 2026-01-02T03:04:05Z or 2026-01-02T03:04:05+01:00"
	return field{
		column: column,
		set: func(row *sqlguard.StatementRow, text string) string {
			at, err := time.Parse(time.RFC3339Nano, text)
			if err != nil || !instant.MatchString(text) || strings.HasSuffix(text, "-00:00") || at.Year() < 1970 {
				return fmt.Sprintf("is %.80q, and %s", text, want)
			}
			row.CreatedAt = at.UTC()
			return ""
		},
		bare:     func(string) bool { return false },
		wantText: want,
	}
}

var amount = regexp.MustCompile(`^[0-9]{1,64}(\.[0-9]{1,30})?$`)

func amountField(column string, of func(*sqlguard.StatementRow) *decimal.NullDecimal) field {
	const want = "must be digits with at most 30 decimal places after a point, such as 1234.50: export it without sign, exponent, currency and separators"
	return field{
		column: column,
		set: func(row *sqlguard.StatementRow, text string) string {
			if !amount.MatchString(text) {
				return fmt.Sprintf("is %.80q, and %s", text, want)
			}
			*of(row) = decimal.NewNullDecimal(decimal.RequireFromString(text))
			return ""
		},
		bare:     amount.MatchString,
		wantText: want,
	}
}

// folded is an id without the difference between upper and lower case.
func folded(id string) string { return strings.ToLower(strings.ToUpper(id)) }

// A digest stands for a row.
type digest [16]byte

func digestOf(row []byte) digest {
	sum := sha256.Sum256(row)
	return digest(sum[:16])
}
