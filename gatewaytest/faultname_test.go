package gatewaytest_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// The name of every fault parses to a fault of that name, and an order asks for it by it.
func TestParseFault(t *testing.T) {
	t.Parallel()
	names := strings.NewReplacer("BYTES", "100", "STATUS", "307", "INTERVAL", "1ns", "POINTER=JSON", "/result/tag=null")
	for _, name := range gatewaytest.FaultNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name := names.Replace(name)
			fault, err := gatewaytest.ParseFault(name)
			require.NoError(t, err)
			assert.Equal(t, name, fault.String())
			if name == "stall" {
				return
			}
			s := start(t)
			for _, orderID := range []string{"mock-" + name, "mock-" + name + "-17", "mock-" + name + "-a=b-c"} {
				post(s, invoice(s, orderID, ""))
				require.Equal(t, 201, post(s, invoice(s, orderID, "")).status, "its second request meets none")
				journal := s.Requests()
				assert.Equal(t, name, journal[len(journal)-2].Fault, orderID)
				assert.Empty(t, journal[len(journal)-1].Fault, orderID)
			}
		})
	}
}

// Every function of the package that returns a fault has a name.
func TestFaultNames(t *testing.T) {
	t.Parallel()
	api, err := os.ReadFile("../api/gatewaytest.txt")
	require.NoError(t, err)
	var functions, names []string
	for _, match := range regexp.MustCompile(`(?m)^func Fault(\w+)\(.*\) Fault$`).FindAllStringSubmatch(string(api), -1) {
		functions = append(functions, strings.ToLower(match[1]))
	}
	require.Greater(t, len(functions), 10)
	for _, name := range gatewaytest.FaultNames() {
		name, _, _ = strings.Cut(name, "=")
		if strings.HasPrefix(name, "refuse-") {
			name = "refuse-as"
		}
		names = append(names, strings.ReplaceAll(name, "-", ""))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	assert.ElementsMatch(t, functions, names)
}

func TestParseFault_refuses(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                  "there is no such fault, but commit-then-drop, drift, edit=POINTER=JSON, empty=STATUS,",
		"drop":              "there is no such fault",
		"refuse":            "write refuse=STATUS",
		"reset=1":           "write reset",
		"refuse=199":        "refuse: it takes a number from 200 to 999",
		"refuse=x":          "refuse: it takes a number from 200 to 999",
		"redirect=200":      "redirect: it takes a number from 300 to 399",
		"truncate=-1":       "truncate: it takes a number from 0 to 2147483647",
		"huge-body=1e9":     "huge-body: it takes a number",
		"slow-body=-1s":     "slow-body: it takes a duration such as 100ms",
		"page=100":          "page: it takes a number from 200 to 999",
		"edit=/result/fee":  "edit: it takes a JSON pointer and a value, such as /result/fee=null",
		"edit=result=1":     "edit: it takes a JSON pointer and a value",
		"refuse-other=400":  "there is no such fault",
		"commit-then-drop ": "there is no such fault",
	} {
		_, err := gatewaytest.ParseFault(name)
		assert.ErrorContains(t, err, want, name)
	}
}

func TestOrderFault_of_other_orders(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, orderID := range []string{
		"order-1", "mock", "mock-", "mock-17", "mock-commit-then-dropped", "mock-commit-then-drop17", "mock-refuse-17", "mock-refuse=17-1",
		"mock-reset=1", "a-mock-commit-then-drop",
	} {
		assert.Equal(t, 201, post(s, invoice(s, orderID, "")).status, orderID)
	}
	s.InjectFault(gatewaytest.OpCreateInvoice, 1, gatewaytest.Fault{})
	assert.Equal(t, 201, post(s, invoice(s, "mock-commit-then-drop-1", "")).status, "a queued fault, even none, goes before")
	assert.Error(t, post(s, invoice(s, "mock-commit-then-drop-1", "")).err)
}

func TestServer_Faults(t *testing.T) {
	t.Parallel()
	s := start(t)
	assert.Empty(t, s.Faults())
	s.InjectFault(gatewaytest.OpBalance, 2, gatewaytest.FaultPage(502))
	s.InjectFault(gatewaytest.OpBalance, 0, gatewaytest.FaultReset())
	s.InjectFaultAtRate(gatewaytest.OpCreateInvoice, 0.25, gatewaytest.FaultCommitThenDrop())
	require.Equal(t, 502, get(t, s, "/api/balance/").status)

	queued := s.Faults()
	require.Len(t, queued, 2)
	assert.Equal(t, []any{gatewaytest.OpBalance, "page=502", 1, 1.0}, []any{queued[0].Operation, queued[0].Fault.String(), queued[0].Times, queued[0].Share})
	assert.Equal(t, []any{gatewaytest.OpCreateInvoice, "commit-then-drop", -1, 0.25}, []any{queued[1].Operation, queued[1].Fault.String(), queued[1].Times, queued[1].Share})
	require.Equal(t, 502, get(t, s, "/api/balance/").status)
	assert.Len(t, s.Faults(), 1, "one that has no request left is not in the queue")
	s.ClearFaults()
	assert.Empty(t, s.Faults())
}

func TestServer_InjectFaultAtRate(t *testing.T) {
	t.Parallel()
	met := func(seed uint64, share float64) (met int, pattern string) {
		s := gatewaytest.NewMemoryServer(gatewaytest.WithRandomSeed(seed))
		defer s.Close()
		s.InjectFaultAtRate(gatewaytest.OpExchangeRates, share, gatewaytest.FaultRefuse(503, "busy"))
		transport := s.Transport()
		for range 1000 {
			if tryBy(transport, s, "GET", "/api/exchange-rate", "").status == 503 {
				met++
				pattern += "x"
			} else {
				pattern += "."
			}
		}
		return met, pattern
	}
	some, first := met(7, 0.25)
	assert.InDelta(t, 250, some, 60)
	_, second := met(7, 0.25)
	assert.Equal(t, first, second, "the same seed")
	_, other := met(8, 0.25)
	assert.NotEqual(t, first, other)
	all, _ := met(7, 1)
	assert.Equal(t, 1000, all)
	none, _ := met(7, 0)
	assert.Zero(t, none)

	s := start(t)
	assert.Panics(t, func() { s.InjectFaultAtRate(gatewaytest.OpBalance, 1.1, gatewaytest.Fault{}) })
	assert.PanicsWithValue(t, `gatewaytest: InjectFaultAtRate for operation "x", want one of its constants`,
		func() { s.InjectFaultAtRate("x", 1, gatewaytest.Fault{}) })
}
