package sqlguard

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The rivals of an unknown order with a row are the orders, whatever their state, of which that row may be
// if its id was changed on its way.
type rivals struct {
	rows  map[string][]string // the ids of the unknown orders with a row, by plainID
	of    map[string][]string // the same, by the id of a rival
	isNew map[string]bool     // the rivals that were not read
	found map[string]string   // by the id of an unknown order, the rival that keeps it undecided
}

func newRivals() rivals {
	return rivals{map[string][]string{}, map[string][]string{}, map[string]bool{}, map[string]string{}}
}

// add adds an unknown order with a row.
func (r *rivals) add(id string) {
	plain := plainID(id)
	r.rows[plain] = append(r.rows[plain], id)
}

// notice looks at the id of an order of the table. The row of another order may have been made of it, or
// be its beginning or end, as a column may be cut.
func (r *rivals) notice(id string) {
	if len(r.rows) == 0 {
		return
	}
	plain := plainID(id)
	forms := formsOf(plain)
	for i := 1; i < len(plain); i++ {
		forms = append(forms, plain[:i], plain[i:])
	}
	for _, form := range forms {
		for _, other := range r.rows[form] {
			if other != id && !slices.Contains(r.of[id], other) {
				r.of[id], r.isNew[id] = append(r.of[id], other), true
			}
		}
	}
}

var (
	digits     = regexp.MustCompile(`^[0-9]+$`)
	scientific = regexp.MustCompile(`^[0-9](?:[.,][0-9]+)?e\+?([0-9]{1,3})$`)
	zeros      = regexp.MustCompile(`(^|[^0-9])0+([0-9])`)
	fraction   = regexp.MustCompile(`^([0-9]+)[.,]0*$`)
)

// formsOf are what plainID can be of a row with an id that was changed: a number may have been rounded, to 15
// digits by a spreadsheet, or to those of a float64.
func formsOf(plain string) []string {
	if !digits.MatchString(plain) {
		return []string{plain}
	}
	all := []string{plain, fmt.Sprint("digits ", len(plain))}
	if number, err := strconv.ParseFloat(plain, 64); err == nil && len(plain) > 15 {
		all = append(all, plain[:15]+strings.Repeat("0", len(plain)-15), strconv.FormatFloat(number, 'f', -1, 64))
	}
	return all
}

// plainID is an id without what a spreadsheet or a form may change: upper and lower case, spaces, quotes, the
// kind of a dash, leading zeros and ".0". Of a number with an exponent it is how many digits it has.
func plainID(id string) string {
	id = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c), unicode.In(c, unicode.Cc, unicode.Cf), strings.ContainsRune("\"'’=`", c):
			return -1
		case unicode.Is(unicode.Pd, c):
			return '-'
		}
		return unicode.ToLower(unicode.ToUpper(c))
	}, id)
	if match := scientific.FindStringSubmatch(id); match != nil {
		exponent, _ := strconv.Atoi(match[1])
		return fmt.Sprint("digits ", exponent+1)
	}
	return fraction.ReplaceAllString(zeros.ReplaceAllString(id, "$1$2"), "$1")
}
