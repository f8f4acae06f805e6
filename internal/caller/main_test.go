package caller_test

import (
	"testing"

	"github.com/cryptogw/gateway/internal/testing/leak"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { leak.Main(m) }
