package gateway

import (
	"bytes"
	"time"

	"github.com/shopspring/decimal"
)

// A memory keeps what was read of a long list, in which much comes again: each
// coin with every network, each network with every coin, a few fees and times.
// What was decoded once is neither decoded nor stored a second time. It lives
// as long as the reading of one list, and its size is bounded.
type memory struct {
	coins    memo[Coin]
	networks memo[Network]
	amounts  memo[decimal.Decimal]
	times    memo[time.Time]
	texts    memo[string]
	inner    decoder      // for records within records
	value    bytes.Buffer // that it reads
}

func newMemory() *memory {
	return &memory{
		coins: memo[Coin]{}, networks: memo[Network]{},
		amounts: memo[decimal.Decimal]{}, times: memo[time.Time]{}, texts: memo[string]{},
	}
}

// A memo keeps values by the JSON that they were read from.
type memo[T any] map[string]T

// maxRecalled bounds the values of a memo, which starts anew with the next one.
const maxRecalled = 256

func (m memo[T]) keep(json []byte, value T) {
	if len(m) == maxRecalled {
		clear(m)
	}
	m[string(json)] = value
}

// recall returns what a value was read as before, or reads it. Outside of a
// list it is read.
func recall[T any](d *decoder, json []byte, in func(*memory) memo[T], read func(*decoder, []byte) T) T {
	if d.memory == nil {
		return read(d, json)
	}
	known := in(d.memory)
	if value, ok := known[string(json)]; ok {
		return value
	}
	value := read(d, json)
	if d.err == nil {
		known.keep(json, value)
	}
	return value
}

func keptCoins(m *memory) memo[Coin]              { return m.coins }
func keptNetworks(m *memory) memo[Network]        { return m.networks }
func keptAmounts(m *memory) memo[decimal.Decimal] { return m.amounts }
func keptTimes(m *memory) memo[time.Time]         { return m.times }
func keptTexts(m *memory) memo[string]            { return m.texts }
