package redact

// A Secret holds a key behind a function, where no formatting verb, no encoder
// and no dump by reflection reaches it. The zero value is empty.
type Secret struct {
	reveal func() string
}

// NewSecret returns a secret that holds key.
func NewSecret(key string) Secret {
	return Secret{reveal: func() string { return key }}
}

// Reveal returns the key.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsEmpty reports whether there is no key.
func (s Secret) IsEmpty() bool { return s.Reveal() == "" }
