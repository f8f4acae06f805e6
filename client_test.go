package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/measure"
)

// A leasing guard says how long its leases are.
type leasing struct {
	gateway.OrderGuard
	lease time.Duration
}

func (g leasing) Lease() time.Duration { return g.lease }

// New refuses these base URLs, keys and guards. Package endpoint tests all rules of texts.
// I-3, I-29
func TestNew(t *testing.T) {
	t.Parallel()
	const host = "https://gateway.example"
	const insecure, noKey = "plain http is for this machine only", "is required; a client without a key of its own needs WithAPIKeySource or WithoutAPIKey"
	source, keyless := gateway.WithAPIKeySource(sameKey), gateway.WithoutAPIKey()
	leases := func(lease time.Duration, opts ...gateway.Option) []gateway.Option {
		return append(opts, gateway.WithOrderGuard(leasing{new(gateway.MemoryGuard), lease}))
	}
	short := gateway.WithHTTPClient(&http.Client{Timeout: 30 * time.Second})
	type row = struct {
		name, url, key   string
		opts             []gateway.Option
		argument, reason string // none for a client
	}
	rows := []row{
		{"an empty URL", "", canary, nil, "baseURL", "is required"},
		{"an unreadable URL with a password", "https://user:s3cret@h:x", canary, nil, "baseURL", "is not a URL"},
		{"plain http to another machine", "http://api.example", canary, nil, "baseURL", insecure},
		{"a host that only looks local", "http://localhost.example", canary, nil, "baseURL", insecure},
		{"a user and a password", "https://user:s3cret@h", canary, nil, "baseURL", "must not hold a user or password"},
		{"plain http by choice", "http://api.example", canary, []gateway.Option{gateway.WithPlainHTTP()}, "", ""},
		{"this machine", "http://localhost", canary, nil, "", ""},
		{"a prefix", host + "/merchant", canary, nil, "", ""},
		{"no key", host, "", nil, "apiKey", noKey},
		{"a key beside a source", host, canary, []gateway.Option{source}, "apiKey", "must be empty with WithAPIKeySource"},
		{"a key in a client without one", host, canary, []gateway.Option{keyless}, "apiKey", "must be empty with WithoutAPIKey"},
		{"a source instead", host, "", []gateway.Option{source}, "", ""},
		{"a client without a key", host, "", []gateway.Option{keyless}, "", ""},
		{"a source for named merchants", host, "", []gateway.Option{source, keyless}, "", ""},
		{
			"a lease of three attempts of a minute and two pauses of 5 s, less a second", host, canary, leases(189 * time.Second), "WithOrderGuard",
			"the lease of the guard is 3m9s, and must be longer than an invoice may take, which is 3m10s by WithRetry",
		},
		{"a lease that leaves nothing for the guard", host, canary, leases(190 * time.Second), "WithOrderGuard", "the lease of the guard is 3m10s"},
		{"a lease that leaves a little", host, canary, leases(191 * time.Second), "", ""},
		{"a lease that never ends", host, canary, leases(0), "", ""},
		{"a lease without pauses that a response asks for", host, canary, leases(4*time.Minute, gateway.WithIdempotentOrders()), "WithOrderGuard", "which is 4m0s"},
		{"a lease of one attempt", host, canary, leases(61*time.Second, once()), "", ""},
		{"a lease beside a Timeout of the http.Client, which ends no invoice", host, canary, leases(100*time.Second, short), "WithOrderGuard", "which is 3m10s"},
	}
	for _, bad := range badKeys {
		rows = append(rows, row{bad.name, host, bad.key, nil, "apiKey", bad.reason})
	}
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New(tt.url, tt.key, tt.opts...)
			assert.Equal(t, tt.reason == "", c != nil)
			if tt.reason == "" {
				assert.NoError(t, err)
				return
			}
			assertRefused(t, err, "new", tt.argument, tt.reason)
			assert.NotContains(t, fmt.Sprintf("%+v", err), "s3cret")
		})
	}
}

// A checkedGuard answers Check.
type checkedGuard struct {
	gateway.OrderGuard
	err error
}

func (g checkedGuard) Check(context.Context) error { return g.err }

func TestClient_Check(t *testing.T) {
	t.Parallel()
	noTable := errors.New("there is no table")
	decodes := gateway.WithBalanceDecoder(func(json.RawMessage) ([]gateway.BalanceAmount, error) { return nil, nil })
	const noRoute = `{"message":"Cannot GET /api/balance/","error":"Not Found","statusCode":404}`
	for _, tt := range []struct {
		name    string
		status  int
		body    string
		opt     gateway.Option
		keyless bool // the listing is read, and not the balance
		guard   error
		want    []string // parts of the error; nil for none
	}{
		{"a balance", 200, enveloped(balanceJSON), once(), false, nil, nil},
		{"a balance of another form", 200, enveloped(`{"accounts":[]}`), once(), false, nil, nil},
		{"an empty balance", 200, enveloped(`[]`), once(), false, nil, nil},
		{"a service without a balance", 404, refused("Not found."), once(), false, nil, nil},
		{"the page of another server", 404, "<html>", once(), false, nil, []string{"gateway: balance: 404"}},
		{"a framework that has no such route", 404, noRoute, once(), false, nil, []string{"gateway: balance: 404"}},
		{"a key that is refused", 401, refused("No."), once(), false, nil, []string{"gateway: balance: 401"}},
		{"the page of a CDN", 200, "<html>", once(), false, nil, []string{"gateway: balance: 200: response not understood"}},
		{"a bare balance", 200, `{"accounts":[]}`, once(), false, nil, []string{"/result: is missing"}},
		{"a bare balance that a decoder reads", 200, `{"accounts":[]}`, decodes, false, nil, nil},
		{"a client without a key", 200, enveloped("[" + pairJSON + "]"), gateway.WithoutAPIKey(), true, nil, nil},
		{"a listing that is not there", 404, refused("Not found."), gateway.WithoutAPIKey(), true, nil, []string{"gateway: coin_networks: 404"}},
		{"a guard that is not ready", 200, enveloped(balanceJSON), once(), false, noTable, []string{"gateway: check: the order guard: there is no table"}},
		{"a key in the error of the guard", 200, enveloped(balanceJSON), once(), false, errors.New("no " + canary), []string{"no [REDACTED]"}},
		{"neither is ready, and one attempt is made", 503, refused("No."), decodes, false, noTable, []string{"gateway: balance: 503", "there is no table"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, key, target := serve(t, respond(tt.status, tt.body)), canary, "/api/balance/"
			if tt.keyless {
				key, target = "", "/api/networks-coins"
			}
			c, err := gateway.New(w.URL, key, tt.opt, gateway.WithOrderGuard(checkedGuard{new(gateway.MemoryGuard), tt.guard}))
			require.NoError(t, err)
			err = c.Check(t.Context())
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
			assert.Equal(t, tt.want == nil, err == nil, "%v", err)
			assert.Equal(t, tt.guard == noTable, errors.Is(err, noTable))
			assertNoKey(t, err)
			assert.Equal(t, prefix+target, only(t, w).Target)
		})
	}
}

// A client without a guard says so, but not on this machine.
func TestNew_noGuard(t *testing.T) {
	t.Parallel()
	var none gateway.OrderGuard
	for base, want := range map[string]int{"https://shop.example": 1, "http://localhost": 0} {
		var log bytes.Buffer
		logger := gateway.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
		_, err := gateway.New(base, canary, gateway.WithOrderGuard(none), logger)
		require.NoError(t, err)
		assert.Equal(t, want, strings.Count(log.String(), "this client has no OrderGuard"), base)
	}
}

// Shutdown waits for the slowest of the invoices that are being sent. From then on no invoice is sent.
func TestClient_Shutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var guard gateway.MemoryGuard
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(&guard), through(func(req *http.Request) (*http.Response, error) {
			wait, _ := time.ParseDuration(req.Header.Get("X-Wait"))
			time.Sleep(wait)
			if req.Method == http.MethodGet {
				return reply(201, enveloped(withdrawalJSON)), nil
			}
			return reply(200, enveloped(invoiceJSON)), nil
		}))
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
		begun, sending := time.Now(), make(chan error, 2)
		for id, wait := range map[string]string{"A-18": "1s", "A-19": "3s"} {
			go func() {
				_, err := c.CreateInvoice(t.Context(), order(id), gateway.WithHeader("X-Wait", wait))
				sending <- err
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		assert.Equal(t, context.DeadlineExceeded, c.Shutdown(ctx), "invoices are being sent")

		invoice, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
		assert.True(t, invoice.Replayed)
		_, err = c.CreateInvoice(t.Context(), order("A-20"))
		require.ErrorIs(t, err, gateway.ErrShutdown)
		_ = as[*gateway.TransportError](t, err)
		assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
		assert.False(t, gateway.SafeToRetry(err))
		assert.Equal(t, gateway.OrderFree, statusOf(t, &guard, "", "A-20").State)
		assert.NoError(t, withdrawal(t.Context(), c), "reads go on")

		done := make(chan error)
		for range 2 {
			go func() { done <- c.Shutdown(t.Context()) }()
		}
		assert.NoError(t, errors.Join(<-done, <-done))
		assert.Equal(t, 3*time.Second, time.Since(begun))
		assert.NoError(t, errors.Join(<-sending, <-sending), "an invoice that is being sent is not cut")
		for range 64 {
			assert.NoError(t, c.Shutdown(ctx), "there is no call, although the context has ended")
		}
	})
}

// Shutdown waits for a call that is still asking for its key, and until observers have the end of a call.
func TestClient_Shutdown_waits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended gateway.Outcome
		c := clientWithKeySource(t, "http://localhost", func(context.Context) (string, error) {
			time.Sleep(time.Second)
			return canary, nil
		}, neverSends(), gateway.WithObserver(gateway.Observer{End: func(_ context.Context, c gateway.Call) {
			time.Sleep(time.Second)
			ended = c.Outcome
		}}))
		go func() { _, _ = c.CreateInvoice(t.Context(), order("A-17")) }()
		synctest.Wait()
		assert.NoError(t, c.Shutdown(t.Context()))
		assert.Equal(t, gateway.OutcomeNotSent, ended, "it had not sent the invoice")
	})
}

// An unknown order stays unknown, also with a gateway that returns the first invoice, and so does the order of a
// client without a guard.
func TestClient_Shutdown_whatIsKnown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		opts []gateway.Option
		want gateway.Outcome
	}{
		{"an unknown order", nil, gateway.OutcomeUnknown},
		{"an unknown order that would be sent again", []gateway.Option{gateway.WithIdempotentOrders()}, gateway.OutcomeUnknown},
		{"no guard", []gateway.Option{gateway.WithOrderGuard(nil)}, gateway.OutcomeNotSent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(500, refused("oops")))
			c := newClient(t, w.URL, append(tt.opts, once())...)
			_, err := c.CreateInvoice(t.Context(), order("A-17"))
			require.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
			require.NoError(t, c.Shutdown(t.Context()))
			_, err = c.CreateInvoice(t.Context(), order("A-17"))
			assert.Equal(t, tt.want, gateway.OutcomeOf(err))
			assert.False(t, gateway.SafeToRetry(err))
			only(t, w)
		})
	}
}

// A countingCloser is a RoundTripper that counts how often its idle connections are closed.
type countingCloser struct {
	http.RoundTripper
	closed int
}

func (c *countingCloser) CloseIdleConnections() { c.closed++ }

// The idle connections are those of the caller's transport; errors of calls do not close them.
func TestClient_CloseIdleConnections(t *testing.T) {
	t.Parallel()
	counting := &countingCloser{RoundTripper: tripper(respondAlways(404))}
	c := newClient(t, "http://localhost", gateway.WithHTTPClient(&http.Client{Transport: counting}))
	for range 3 {
		require.Error(t, withdrawal(t.Context(), c))
	}
	assert.Zero(t, counting.closed)
	c.CloseIdleConnections()
	assert.Equal(t, 1, counting.closed)

	newClient(t, "http://localhost", through(respondAlways(404))).CloseIdleConnections() // a RoundTripper without the method
	w := serve(t, respond(201, enveloped(withdrawalJSON)))
	own, err := gateway.New(w.URL, canary)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, withdrawal(t.Context(), own))
		own.CloseIdleConnections()
	}
}

// setenv sets the variables of FromEnv, and no others of them.
func setenv(t *testing.T, baseURL, key, file string) {
	t.Helper()
	t.Setenv("GATEWAY_BASE_URL", baseURL)
	t.Setenv("GATEWAY_API_KEY", key)
	t.Setenv("GATEWAY_API_KEY_FILE", file)
}

func keyFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestFromEnv(t *testing.T) {
	w := serve(t, respond(201, enveloped(withdrawalJSON)))
	for _, tt := range []struct{ key, file string }{
		{canary, ""}, {"", keyFile(t, canary)}, {"", keyFile(t, canary+"\n")}, {"", keyFile(t, canary+"\r\n")}, // from Windows
	} {
		setenv(t, w.URL, tt.key, tt.file)
		c, err := gateway.FromEnv(once())
		require.NoError(t, err)
		assertNoKey(t, c)
		require.NoError(t, withdrawal(t.Context(), c))
		assert.Equal(t, canary, w.Requests()[len(w.Requests())-1].Header.Get("x-api-key"))
	}
}

// Each way that the environment can be wrong is refused, by the name of the variable or of the option.
func TestFromEnv_refuses(t *testing.T) {
	const url, notLocal = "https://gateway.example", "GATEWAY_BASE_URL: must begin with https://: plain http is for this machine only, or with GATEWAY_PLAIN_HTTP=1"
	source := gateway.WithAPIKeySource(sameKey)
	for _, tt := range []struct {
		name, url, key, file, plain string
		opt                         gateway.Option
		want                        string // no text for a client
	}{
		{"no base URL", "", canary, "", "", once(), "GATEWAY_BASE_URL: is required"},
		{"a bad base URL", "ftp://gateway.example", canary, "", "", once(), "GATEWAY_BASE_URL: must begin with https://"},
		{"plain http", "http://gateway.example", canary, "", "", once(), notLocal},
		{"plain http, which is turned off", "http://gateway.example", canary, "", "0", once(), notLocal},
		{"plain http, which is allowed", "http://gateway.example", canary, "", "1", once(), ""},
		{"plain http, in another word", url, canary, "", "true", once(), "GATEWAY_PLAIN_HTTP: must be 1 or 0"},
		{"a bad key", url, " " + canary, "", "", once(), "GATEWAY_API_KEY: must not begin or end with a space"},
		{"no key", url, "", "", "", once(), "GATEWAY_API_KEY: is required, or GATEWAY_API_KEY_FILE; a client without a key of its own needs WithAPIKeySource or WithoutAPIKey"},
		{"no key in a client without one", url, "", "", "", gateway.WithoutAPIKey(), ""},
		{"a key in quotes", url, `"` + canary + `"`, "", "", once(), "GATEWAY_API_KEY: has quotes: write the key without them"},
		{"a key with its name", url, "GATEWAY_API_KEY=" + canary, "", "", once(), "GATEWAY_API_KEY: has NAME=...: write the value alone"},
		{"both ways of a key", url, canary, "/etc/key", "", once(), "GATEWAY_API_KEY_FILE: must not be set together with GATEWAY_API_KEY"},
		{"a file that is not there", url, "", filepath.Join(t.TempDir(), canary), "", once(), "GATEWAY_API_KEY_FILE: the file cannot be read: no such file or directory"},
		{"a file of two lines", url, "", keyFile(t, canary+"\n"+canary+"\n"), "", once(), "GATEWAY_API_KEY_FILE: the key in the file must be printable ASCII: no line end, tab or other control character"},
		{"no source", url, canary, "", "", gateway.WithAPIKeySource(nil), "WithAPIKeySource: must not be nil"},
		{"a key and a source", url, canary, "", "", source, "GATEWAY_API_KEY: must be empty with WithAPIKeySource"},
		{"a file and a source", url, "", keyFile(t, canary), "", source, "GATEWAY_API_KEY_FILE: must be empty with WithAPIKeySource"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setenv(t, tt.url, tt.key, tt.file)
			t.Setenv("GATEWAY_PLAIN_HTTP", tt.plain)
			c, err := gateway.FromEnv(tt.opt)
			assert.Equal(t, tt.want == "", c != nil)
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			require.EqualError(t, err, "gateway: new: "+tt.want)
			assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
			assertNoKey(t, err)
		})
	}
}

// A key that is replaced in its file is the key of the next call.
func TestAPIKeyFile(t *testing.T) {
	t.Parallel()
	w := serve(t, respond(201, enveloped(withdrawalJSON)))
	name := keyFile(t, canary)
	c, err := gateway.New(w.URL, "", once(), gateway.WithAPIKeySource(gateway.APIKeyFile(name)))
	require.NoError(t, err)
	for i, key := range []string{canary, "THE-NEXT-KEY-4711", "THE-LAST-KEY-4711"} {
		next := keyFile(t, key+"\r\n")
		require.NoError(t, os.Rename(next, name))
		_, err = c.Withdrawal(t.Context(), requestID)
		require.NoError(t, err)
		assert.Equal(t, key, w.Requests()[i].Header.Get("x-api-key"))
	}
	assertNoKey(t, c)
}

// A file has one key, of any printable characters, alone on its line. An error does not have the name of the file.
func TestAPIKeyFile_texts(t *testing.T) {
	t.Parallel()
	const lines, quotes, assignment = "must be printable ASCII", "the file has quotes", "the file has NAME=...: write the value alone"
	const space, ascii, irregular = "the key in the file must not begin or end with a space", "must be printable ASCII", "it is not a regular file"
	for text, want := range map[string]string{
		"": "the key in the file is required", "\n": "the key in the file is required",
		" " + canary: space, canary + " \n": space, "\t" + canary: ascii, "\ufeff" + canary: ascii,
		canary + "\n\n": lines, canary + "\n" + canary: lines, strings.Repeat("k", 4096) + "\r\nx": "longer than 4,096 bytes",
		`"` + canary + "\"\n": quotes, "'" + canary + "'": quotes, `""`: quotes,
		"GATEWAY_API_KEY=" + canary + "\n": assignment, `key2="` + canary + `"`: assignment, "export _KEY=" + canary: assignment,
		"key = " + canary + "==": assignment, strings.Repeat("k", 1<<20): "the key in the file is longer than 4,096 bytes",
	} {
		got, err := gateway.APIKeyFile(keyFile(t, text))(t.Context())
		assert.ErrorContains(t, err, want, "%.20q", text)
		assert.Empty(t, got)
		assertNoKey(t, err)
	}
	for _, key := range []string{
		"k", "c2VjcmV0a2V5MQ==", "c2VjcmV0a2V5MTI=", "a+b/c=", "=", "=key", "a-b=c", "1abc=def", `"key`, `key'`, `"key'`, `"`, `a"b"c`,
		"key with spaces", "export key", strings.Repeat("k", 4096),
	} {
		got, err := gateway.APIKeyFile(keyFile(t, key+"\r\n"))(t.Context())
		require.NoError(t, err, "%.20q", key)
		assert.Equal(t, key, got)
	}
	pipe := filepath.Join(t.TempDir(), "key") // one without a writer would hold up the call
	_ = exec.Command("mkfifo", pipe).Run()
	missing := "no such file or directory"
	for name, want := range map[string]string{filepath.Join(t.TempDir(), canary): missing, t.TempDir(): irregular, "/dev/zero": irregular, pipe: irregular} {
		if _, err := os.Stat(name); err == nil || want == missing { // a system may have no mkfifo
			_, err := gateway.APIKeyFile(name)(t.Context())
			assert.EqualError(t, err, "the file cannot be read: "+want)
			assert.Equal(t, want == missing, errors.Is(err, fs.ErrNotExist))
			assertNoKey(t, err)
		}
	}
}

// No more is read of a file than a key can have.
func TestAPIKeyFile_bound(t *testing.T) {
	name := keyFile(t, "")
	require.NoError(t, os.Truncate(name, 64<<20))
	assert.Less(t, measure.Allocated(func() {
		_, err := gateway.APIKeyFile(name)(t.Context())
		assert.Error(t, err)
	}), uint64(1<<20))
}

// shops are how many gateways TestNew_secondClient has named: the process remembers what it warned of.
var shops atomic.Int64

// A second client with the default guard, for the same base URL and key, is warned of once: neither knows the orders of
// the other. On this machine, and after a Shutdown of the first, it is expected.
func TestNew_secondClient(t *testing.T) {
	t.Parallel()
	guard := gateway.WithOrderGuard(new(gateway.MemoryGuard))
	for _, tt := range []struct {
		name                string
		firstURL, secondURL string
		secondKey           string
		opt                 gateway.Option // of the second client
		shutsDown           bool
		want                int // warnings, after a third client too
	}{
		{"the same gateway and key", "https://shop-%d.example", "https://SHOP-%d.example:443/", canary, once(), false, 1},
		{"another gateway", "https://shop-%d.example", "https://shop-%d.example/other", canary, once(), false, 0},
		{"another key", "https://shop-%d.example", "https://shop-%d.example", canary + "2", once(), false, 0},
		{"a guard that is given", "https://shop-%d.example", "https://shop-%d.example", canary, guard, false, 0},
		{"this machine", "http://127.0.0.1:%d", "http://127.0.0.1:%d", canary, once(), false, 0},
		{"the first one was shut down", "https://shop-%d.example", "https://shop-%d.example", canary, once(), true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			logger := gateway.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
			shop := shops.Add(1)
			first, err := gateway.New(fmt.Sprintf(tt.firstURL, shop), canary, logger)
			require.NoError(t, err)
			if tt.shutsDown {
				require.NoError(t, first.Shutdown(t.Context()))
				require.NoError(t, first.Shutdown(t.Context()), "which counts once")
			}
			for range 2 {
				_, err = gateway.New(fmt.Sprintf(tt.secondURL, shop), tt.secondKey, logger, tt.opt)
				require.NoError(t, err)
				if tt.want == 0 {
					break
				}
			}
			assert.Equal(t, tt.want, strings.Count(log.String(), "this process has a second client for the same gateway and key"))
			assertNoKey(t, log.String())
		})
	}
}
