package redact

import (
	"net/url"
	"strings"
)

var jsonEscapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// spellings returns a key, which is printable ASCII, as it is and as JSON and URLs write it. Most keys have
// one spelling: none of them changes letters, digits and - _ . ~
func spellings(key string) []string {
	query := url.QueryEscape(key)
	if query == key {
		return []string{key}
	}
	return []string{key, jsonEscapes.Replace(key), query, url.PathEscape(key)}
}
