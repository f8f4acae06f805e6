package export

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway/internal/money"
)

const maxID = 1024 // as the client sends it

var (
	formula     = regexp.MustCompile(`^="(.*)"$`)     // as a spreadsheet keeps a text that looks like a number
	guarded     = regexp.MustCompile(`^'[=+\-@\t\r]`) // as gateway-orders export writes what a spreadsheet would execute
	wholeNumber = regexp.MustCompile(`^((0|[1-9][0-9]{0,14}))?$`)
	scientific  = regexp.MustCompile(`^[0-9]([.,][0-9]+)?[Ee]\+?[0-9]+$`)
)

// readID reads an identifier. A long number of JSON may have been rounded on its way.
func readID(v cell) (id, fault string) {
	text := v.text
	if v.bare && !wholeNumber.MatchString(text) {
		return "", "is neither a text nor a whole number of at most 15 digits"
	}
	if match := formula.FindStringSubmatch(text); match != nil {
		text = match[1]
	}
	if guarded.MatchString(text) {
		text = text[1:]
	}
	id = strings.TrimFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.In(c, unicode.Z, unicode.Cf) })
	switch {
	case len(id) > maxID:
		return "", "is longer than 1,024 bytes"
	case !utf8.ValidString(id):
		return "", "is not UTF-8"
	case strings.ContainsFunc(id, unicode.IsControl):
		return "", "has a control character"
	case scientific.MatchString(id):
		return "", fmt.Sprintf("is %q, as a spreadsheet writes a number: export it as text", id)
	}
	return id, ""
}

// Layouts of times with a zone, and without.
var (
	withZone    = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z0700"}
	withoutZone = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05"}
	namesUTC    = regexp.MustCompile(` ?(UTC|GMT)$`)
	zoneSpace   = regexp.MustCompile(`([0-9]) ([+-][0-9]{2}:?[0-9]{2})$`)
)

// readTime reads a time.
func (s *Settings) readTime(text string) (at time.Time, fault string) {
	switch text = strings.TrimSpace(text); {
	case text == "":
		return at, "is empty"
	case strings.HasPrefix(s.TimeLayout, "unix"):
		return readUnix(text, s.TimeLayout)
	case s.TimeLayout != "" && hasZone(s.TimeLayout):
		at, _ = time.Parse(s.TimeLayout, text)
	case s.TimeLayout != "":
		return s.readLocal(text, s.TimeLayout)
	default:
		zoned := zoneSpace.ReplaceAllString(namesUTC.ReplaceAllString(text, "Z"), "$1$2")
		for _, layout := range withZone {
			if at, err := time.Parse(layout, zoned); err == nil && !strings.HasSuffix(zoned, "-00:00") {
				return checkTime(at, text)
			}
		}
		for _, layout := range withoutZone {
			if _, err := time.Parse(layout, text); err == nil {
				return s.readLocal(text, layout)
			}
		}
	}
	return checkTime(at, text)
}

func readUnix(text, layout string) (at time.Time, fault string) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return at, fmt.Sprintf("is %.80q, and no time", text)
	case layout == "unix":
		at = time.Unix(n, 0).UTC()
	default:
		at = time.UnixMilli(n).UTC()
	}
	return checkTime(at, text)
}

// readLocal reads a time of the zone. An hour that is there twice when clocks are set back is ambiguous.
func (s *Settings) readLocal(text, layout string) (at time.Time, fault string) {
	if s.location == nil {
		return at, fmt.Sprintf("is %.80q, without a zone: name the zone in the settings", text)
	}
	wall, err := time.Parse(layout, text)
	if err != nil {
		return checkTime(at, text)
	}
	const digits = "2006-01-02 15:04:05"
	at, _ = time.ParseInLocation(layout, text, s.location)
	shows := func(t time.Time) bool { return t.In(s.location).Format(digits) == wall.Format(digits) }
	if !shows(at) || shows(at.Add(time.Hour)) || shows(at.Add(-time.Hour)) {
		return time.Time{}, fmt.Sprintf("is %.80q, when the clocks of %s are changed", text, s.Zone)
	}
	return checkTime(at, text)
}

func checkTime(at time.Time, text string) (time.Time, string) {
	if at.Year() < 2000 || at.Year() > 2200 {
		return time.Time{}, fmt.Sprintf("is %.80q, and no time in a form that is known: name the timeLayout in the settings", text)
	}
	return at.UTC(), ""
}

var (
	currency   = regexp.MustCompile(`^(?:[A-Za-z]{2,10}|[$€£¥]) ?|(?: ?[$€£¥]| [A-Za-z]{2,10})$`)
	withPoints = regexp.MustCompile(`^[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]+)?$`)
	withCommas = regexp.MustCompile(`^[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+$`)
	leading    = regexp.MustCompile(`^0+([0-9])`)
)

// readAmount reads an amount. An empty text is none.
func (s *Settings) readAmount(text string) (amount decimal.NullDecimal, fault string) {
	digits := currency.ReplaceAllString(strings.TrimSpace(text), "")
	switch {
	case text == "":
		return amount, ""
	case s.DecimalComma && (withPoints.MatchString(digits) || !strings.Contains(digits, ".")):
		digits = strings.Replace(strings.ReplaceAll(digits, ".", ""), ",", ".", 1)
	case s.DecimalComma:
		digits = ""
	case withCommas.MatchString(digits):
		digits = strings.ReplaceAll(digits, ",", "")
	}
	value, err := money.Parse([]byte(leading.ReplaceAllString(digits, "$1")))
	if err != nil || value.IsNegative() {
		return amount, fmt.Sprintf("is %.80q, and no amount as the settings have it", text)
	}
	return decimal.NewNullDecimal(value), ""
}
