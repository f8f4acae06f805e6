package gateway

import (
	"hash/maphash"
	"time"

	"github.com/shopspring/decimal"
)

// A memory keeps what was read of a long list, in which much comes again: each
// coin with every network, each network with every coin, a few fees and times.
// What was decoded once is neither decoded nor stored a second time. It lives
// as long as the reading of one list, and its size is bounded.
type memory struct {
	seed     maphash.Seed
	coins    memo[Coin]
	networks memo[Network]
	amounts  memo[decimal.Decimal]
	times    memo[time.Time]
	texts    memo[string]
	inner    decoder // for records within records
}

func newMemory() *memory { return &memory{seed: maphash.MakeSeed()} }

// A memo keeps values by the JSON that they were read from. Of those that fall
// into one slot it keeps the last.
type memo[T any] [128]slot[T]

type slot[T any] struct {
	json  string
	value T
}

// slotFor returns where the value of some JSON is kept, if it is. Without a
// memory it is nil, where nothing is.
func slotFor[T any](m *memory, in func(*memory) *memo[T], json []byte) *slot[T] {
	if m == nil {
		return nil
	}
	slots := in(m)
	return &slots[maphash.Bytes(m.seed, json)%uint64(len(slots))]
}

func (s *slot[T]) holds(json []byte) bool { return s != nil && s.json == string(json) }

func (s *slot[T]) keep(json []byte, value T) {
	if s != nil {
		s.json, s.value = string(json), value
	}
}

func keptCoins(m *memory) *memo[Coin]              { return &m.coins }
func keptNetworks(m *memory) *memo[Network]        { return &m.networks }
func keptAmounts(m *memory) *memo[decimal.Decimal] { return &m.amounts }
func keptTimes(m *memory) *memo[time.Time]         { return &m.times }
func keptTexts(m *memory) *memo[string]            { return &m.texts }
