package commandline

import "strings"

// maxMistyped is the largest text that is compared with names, in bytes.
const maxMistyped = 64

// Similar returns the question whether a name was meant, with a prefix such as "-", or "":
// one that the mistyped text begins, or that two changes of a letter lead to.
func Similar(text string, names []string, prefix string) string {
	if len(text) > maxMistyped {
		return ""
	}
	best, least := "", 3
	for _, name := range names {
		if len(text) > 2 && strings.HasPrefix(name, text) {
			best, least = name, 0
		} else if d := distance(text, name); d < least && d < len(name)-1 {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + prefix + best + "?"
}

// distance counts the changes that lead from one text to another (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
