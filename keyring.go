package gateway

import (
	"sync"
	"sync/atomic"
)

// keptKeys is how many keys of a source are kept, the last ones: an answer may
// repeat one that was changed a moment ago.
const keptKeys = 4

// A keyring holds the keys of a client that its answers may repeat: its own, or
// those that its source has given of late.
type keyring struct {
	redactor atomic.Pointer[redactor]

	mu     sync.Mutex
	recent []secret
}

func newKeyring(own secret) *keyring {
	k := &keyring{}
	k.add(own)
	return k
}

// keys returns what takes the keys out of a text.
func (k *keyring) keys() redactor { return *k.redactor.Load() }

// add adds a key, unless it is there, and returns what takes it and the others
// out of a text. Asked for later, that may lack it: other calls add keys too.
func (k *keyring) add(key secret) redactor {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, known := range k.recent {
		if known.reveal() == key.reveal() {
			return k.keys()
		}
	}
	k.recent = append(k.recent[max(0, len(k.recent)+1-keptKeys):], key)
	r := newRedactor(k.recent...)
	k.redactor.Store(&r)
	return r
}
