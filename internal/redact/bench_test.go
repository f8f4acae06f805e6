package redact_test

import (
	"strings"
	"testing"

	"github.com/cryptogw/gateway/internal/redact"
)

// benchmarkedKeys are keys of one spelling, of several and of a bad one to search for.
func benchmarkedKeys() map[string]string {
	return map[string]string{
		"letters":  "q8Zk2vXw7LrT5nYb9MdF3hJs6GpC1tVx4QeA0uWiOyKlPzNmBjHgRfDcSaEoIuQw",
		"base64":   "q8Zk2vXw7LrT+5nYb9MdF3hJs6GpC/tVx4QeA0uWiOy=",
		"repeated": strings.Repeat("a", 63) + "b",
	}
}

func BenchmarkRedactor_Text(b *testing.B) {
	for name, key := range benchmarkedKeys() {
		for place, text := range map[string]string{
			"word":    "Tether USD",
			"words":   strings.Repeat("a text without a key. ", 8<<20/22),
			"nearly":  strings.Repeat("a", 8<<20),
			"listing": strings.Repeat(`{"id":"q8f1","symbol":"USDT","logo":"https:\/\/x.example/q8.png","price":"1.0001"},`, 8<<20/84),
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

// A call with a key of its own makes a redactor.
func BenchmarkRedactor_With(b *testing.B) {
	for name, key := range benchmarkedKeys() {
		r, secret := of("the-key-of-the-client"), redact.NewSecret(key)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = r.With(secret)
			}
		})
	}
}
