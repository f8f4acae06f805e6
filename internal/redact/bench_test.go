package redact_test

import (
	"strings"
	"testing"
)

func BenchmarkRedactor_Text(b *testing.B) {
	for name, key := range map[string]string{"random": "q8Zk2vXw7LrT5nYb9MdF3hJs6GpC1tVx4QeA0uWiOyKlPzNmBjHgRfDcSaEoIuQw", "repeated": strings.Repeat("a", 63) + "b"} {
		for place, text := range map[string]string{
			"words": strings.Repeat("a text without a key. ", 8<<20/22), "nearly": strings.Repeat("a", 8<<20), "escaped": strings.Repeat(`a text\/with an escape. `, 8<<20/24),
		} {
			r := of(key)
			b.Run(name+"/"+place, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					_ = r.Text(text)
				}
			})
		}
	}
}
