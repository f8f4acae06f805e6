// Package results has results of undocumented shapes, for tests of what these cost.
package results

import "strings"

// Wide returns results of so many members or elements, at all depths together, in the
// shapes that are accepted. The amount of coin i is amount(i), its name name(i).
func Wide(entries int, name, amount func(i int) string) map[string][]string {
	list := func(begin, format, end string, each int) string {
		var all strings.Builder
		for i := range entries / each {
			all.WriteByte(',')
			for _, b := range []byte(format) {
				switch b {
				case '1':
					all.WriteString(amount(i))
				case '2':
					all.WriteString(amount(i + 1))
				case 'N':
					all.WriteString(name(i))
				default:
					all.WriteByte(b)
				}
			}
		}
		return begin + strings.TrimPrefix(all.String(), ",") + end
	}
	half := list(`{`, `"N":1`, `}`, 2)
	return map[string][]string{
		"Balance": {
			list(`{`, `"N":1`, `}`, 1), list(`{`, `"N":{"amount":1}`, `}`, 2),
			list(`[`, `{"amount":1}`, `]`, 2), list(`[`, `{"coin":"N","amount":1}`, `]`, 3),
		},
		"ExchangeRates": {
			list(`{`, `"N":{"usd":1,"eur":2}`, `}`, 3), list(`[`, `{"coin":"N","usd":1,"eur":2}`, `]`, 4),
			list(`[`, `{"coin":"N","usd":1}`, `]`, 3), list(`[{"coin":"A","usd":1},`, `{"coin":"N"}`, `]`, 2),
			`{"usd":` + half + `,"eur":` + half + `}`, `{"usd":` + list(`{`, `"N":1`, `}`, 1) + `,"eur":{}}`,
		},
		"CreateInvoice": {list(`{`, `"N":1`, `}`, 1), list(`[`, `1`, `]`, 1), list(`[`, `{"N":1}`, `]`, 2)},
	}
}

// ShortName returns one of the shortest names for an index.
func ShortName(i int) string {
	const letters = "ABCDEFGHIJKLMOPQRSTUVWXYZ03456789!#$%&'()*+-./;<=>?@^_`|~abcdefghijklmnopqrstuvwxyz"
	name := letters[i%len(letters)]
	if i < len(letters) {
		return string(name)
	}
	return string(name) + ShortName(i/len(letters)-1)
}
