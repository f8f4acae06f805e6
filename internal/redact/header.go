package redact

import "strings"

// HoldsSecret reports whether a header holds a secret, by its name.
func HoldsSecret(header string) bool {
	name := strings.ToLower(header)
	for _, part := range [...]string{"authorization", "token", "cookie", "secret", "key"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// HeaderSecrets returns the secrets in the value of a header that holds some: each part of it, also without the
// scheme or the name before it.
func HeaderSecrets(value string) (all []Secret) {
	for part := range strings.SplitSeq(value, ";") {
		part = strings.TrimSpace(part)
		all = append(all, NewSecret(part))
		for _, separator := range [...]string{" ", "="} {
			if _, secret, found := strings.Cut(part, separator); found {
				all = append(all, NewSecret(secret))
			}
		}
	}
	return all
}
