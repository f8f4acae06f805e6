package redact

import (
	"sync"
	"sync/atomic"
)

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

// maxRecent is how many keys a [Keyring] holds: a response may repeat one that
// was replaced a moment ago.
const maxRecent = 4

// A Keyring holds the last 4 keys that were added to it. It is safe for
// concurrent use. Make it with [NewKeyring].
type Keyring struct {
	redactor atomic.Pointer[Redactor]

	mu     sync.Mutex
	recent []Secret
}

// NewKeyring returns a keyring that holds one key.
func NewKeyring(first Secret) *Keyring {
	k := &Keyring{}
	k.Add(first)
	return k
}

// Redactor returns what removes the keys from a text.
func (k *Keyring) Redactor() Redactor { return *k.redactor.Load() }

// Add adds a key, unless it is there, and returns what removes it and the others.
// [Keyring.Redactor] may lack it later: other goroutines add keys too.
func (k *Keyring) Add(key Secret) Redactor {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, known := range k.recent {
		if known.Reveal() == key.Reveal() {
			return k.Redactor()
		}
	}
	k.recent = append(k.recent[max(0, len(k.recent)+1-maxRecent):], key)
	r := New(k.recent...)
	k.redactor.Store(&r)
	return r
}
