package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/measure"
)

// What a base URL must be is tested in package endpoint. Here it is refused by name,
// and an unencrypted one is.
// I-3
func TestNew_baseURL(t *testing.T) {
	t.Parallel()
	const insecure = "plain http is for this machine only"
	for _, tt := range []struct {
		name, url, reason string // no reason for a client
		opts              []gateway.Option
	}{
		{"an empty URL", "", "is required", nil},
		{"an unreadable URL with a password", "https://user:s3cret@h:x", "is not a URL", nil},
		{"plain http to another machine", "http://api.example", insecure, nil},
		{"a host that only looks local", "http://localhost.example", insecure, nil},
		{"a user and a password", "https://user:s3cret@h", "must not hold a user or password", nil},
		{"plain http by choice", "http://api.example", "", []gateway.Option{gateway.WithPlainHTTP()}},
		{"this machine", "http://localhost", "", nil},
		{"a prefix", "https://gateway.example/merchant", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := gateway.New(tt.url, canary, tt.opts...)
			assert.Equal(t, tt.reason == "", c != nil)
			if tt.reason == "" {
				assert.NoError(t, err)
				return
			}
			assertRefused(t, err, "new", "baseURL", tt.reason)
			assert.NotContains(t, fmt.Sprintf("%+v", err), "s3cret")
		})
	}
}

// I-29
func TestNew_apiKey(t *testing.T) {
	t.Parallel()
	type row = struct {
		name, key, reason string
		opts              []gateway.Option
	}
	source := gateway.WithAPIKeySource(sameKey)
	rows := []row{
		{"no key", "", "is required; a client without a key of its own needs WithAPIKeySource or WithoutAPIKey", nil},
		{"a key beside a source", canary, "must be empty with WithAPIKeySource", []gateway.Option{source}},
		{"a key in a client without one", canary, "must be empty with WithoutAPIKey", []gateway.Option{gateway.WithoutAPIKey()}},
		{"a source instead", "", "", []gateway.Option{source}},
		{"a client without a key", "", "", []gateway.Option{gateway.WithoutAPIKey()}},
		{"a source for named merchants", "", "", []gateway.Option{source, gateway.WithoutAPIKey()}},
	}
	for _, bad := range badKeys {
		rows = append(rows, row{bad.name, bad.key, bad.reason, nil})
	}
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := gateway.New("https://gateway.example", tt.key, tt.opts...)
			if tt.reason == "" {
				assert.NoError(t, err)
				return
			}
			assertRefused(t, err, "new", "apiKey", tt.reason)
		})
	}
}

// A leasing guard says how long its leases are.
type leasing struct {
	gateway.OrderGuard
	lease time.Duration
}

func (g leasing) Lease() time.Duration { return g.lease }

func TestNew_lease(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		lease  time.Duration
		opts   []gateway.Option
		reason string
	}{
		{"the default of sqlguard", 5 * time.Minute, nil, ""},
		{
			"three attempts of a minute and two pauses of 5 s, less a second", 189 * time.Second, nil,
			"the lease of the guard is 3m9s, and must be longer than an invoice may take, which is 3m10s by WithRetry",
		},
		{"nothing is left for asking the guard", 190 * time.Second, nil, "the lease of the guard is 3m10s"},
		{"a lease that never ends", 0, nil, ""},
		{"a little is left", 191 * time.Second, nil, ""},
		{"pauses that a response asks for", 4 * time.Minute, []gateway.Option{gateway.WithIdempotentOrders()}, "is 4m0s, and must be longer than an invoice may take, which is 4m0s"},
		{"one attempt", 61 * time.Second, []gateway.Option{once()}, ""},
		{"the Timeout of the http.Client", 100 * time.Second, []gateway.Option{gateway.WithHTTPClient(&http.Client{Timeout: 30 * time.Second})}, "which is 1m40s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			guard := leasing{new(gateway.MemoryGuard), tt.lease}
			_, err := gateway.New("https://gateway.example", canary, append(tt.opts, gateway.WithOrderGuard(guard))...)
			if tt.reason == "" {
				assert.NoError(t, err)
				return
			}
			assertRefused(t, err, "new", "WithOrderGuard", tt.reason)
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
	keyless := func(opts *[]gateway.Option) string {
		*opts = append(*opts, gateway.WithoutAPIKey())
		return ""
	}
	const balance, listing = prefix + "/api/balance/", prefix + "/api/networks-coins"
	for _, tt := range []struct {
		name   string
		status int
		body   string
		client func(opts *[]gateway.Option) (key string)
		guard  error
		want   []string // parts of the error; nil for none
		target string
	}{
		{"a balance", 200, enveloped(balanceJSON), nil, nil, nil, balance},
		{"a balance of another form", 200, enveloped(`{"accounts":[]}`), nil, nil, nil, balance},
		{"an empty balance", 200, enveloped(`[]`), nil, nil, nil, balance},
		{"a service without a balance", 404, refused("Not found."), nil, nil, nil, balance},
		{"the page of another server", 404, "<html>", nil, nil, []string{"gateway: balance: 404"}, balance},
		{"a framework that has no such route", 404, `{"message":"Cannot GET /api/balance/","error":"Not Found","statusCode":404}`, nil, nil, []string{"gateway: balance: 404"}, balance},
		{"a key that is refused", 401, refused("No."), nil, nil, []string{"gateway: balance: 401"}, balance},
		{"a service that is down", 503, refused("Not now."), nil, nil, []string{"gateway: balance: 503"}, balance},
		{"the page of a CDN", 200, "<html>", nil, nil, []string{"gateway: balance: 200: response not understood"}, balance},
		{"a bare balance", 200, `{"accounts":[]}`, nil, nil, []string{"/result: is missing"}, balance},
		{"a bare balance that a decoder reads", 200, `{"accounts":[]}`, func(opts *[]gateway.Option) string {
			*opts = append(*opts, gateway.WithBalanceDecoder(func(json.RawMessage) ([]gateway.BalanceAmount, error) { return nil, nil }))
			return canary
		}, nil, nil, balance},
		{"a client without a key", 200, enveloped("[" + pairJSON + "]"), keyless, nil, nil, listing},
		{"a listing that is not there", 404, refused("Not found."), keyless, nil, []string{"gateway: coin_networks: 404"}, listing},
		{"a guard that is not ready", 200, enveloped(balanceJSON), nil, noTable, []string{"gateway: check: the order guard: there is no table"}, balance},
		{"a guard whose error has the key in it", 200, enveloped(balanceJSON), nil, errors.New("no table for " + canary), []string{"no table for [REDACTED]"}, balance},
		{"neither is ready", 503, refused("Not now."), nil, noTable, []string{"gateway: balance: 503", "there is no table"}, balance},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(tt.status, tt.body))
			opts, key := []gateway.Option{gateway.WithOrderGuard(checkedGuard{new(gateway.MemoryGuard), tt.guard})}, canary
			if tt.client != nil {
				key = tt.client(&opts)
			}
			c, err := gateway.New(w.URL, key, opts...)
			require.NoError(t, err)
			err = c.Check(t.Context())
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
			assert.Equal(t, tt.want == nil, err == nil, "%v", err)
			assert.Equal(t, tt.guard == noTable, errors.Is(err, noTable))
			assertNoKey(t, err)
			assert.Equal(t, tt.target, only(t, w).Target)
		})
	}
}

func TestClient_Shutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		arrived, goOn := make(chan struct{}), make(chan struct{})
		var guard gateway.MemoryGuard
		c := newClient(t, "http://localhost", gateway.WithOrderGuard(&guard), through(func(req *http.Request) (*http.Response, error) {
			switch {
			case req.Header.Get("X-Slow") != "":
				close(arrived)
				<-goOn
				return reply(200, enveloped(invoiceJSON)), nil
			case req.Method == http.MethodGet:
				return reply(200, enveloped(ratesJSON)), nil
			default:
				return reply(200, enveloped(invoiceJSON)), nil
			}
		}))
		_, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
		sending := make(chan error, 1)
		go func() {
			_, err := c.CreateInvoice(t.Context(), order("A-18"), gateway.WithHeader("X-Slow", "1"))
			sending <- err
		}()
		<-arrived
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Equal(t, context.DeadlineExceeded, c.Shutdown(ctx), "an invoice is being sent")

		invoice, err := c.CreateInvoice(t.Context(), order("A-17"))
		require.NoError(t, err)
		assert.True(t, invoice.Replayed)
		_, err = c.CreateInvoice(t.Context(), order("A-19"))
		require.ErrorIs(t, err, gateway.ErrShutdown)
		failure, _ := errors.AsType[*gateway.TransportError](err)
		require.NotNil(t, failure)
		assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
		assert.False(t, gateway.SafeToRetry(err))
		status, _ := guard.Order(t.Context(), "", "A-19")
		assert.Equal(t, gateway.OrderFree, status.State)
		_, err = c.ExchangeRates(t.Context())
		assert.NoError(t, err)

		done := make(chan error)
		for range 2 {
			go func() { done <- c.Shutdown(t.Context()) }()
		}
		synctest.Wait()
		select {
		case <-done:
			t.Error("Shutdown has returned while an invoice is being sent")
		default:
		}
		close(goOn)
		assert.NoError(t, <-sending, "an invoice that is being sent is not cut")
		assert.NoError(t, <-done)
		assert.NoError(t, <-done)
		assert.NoError(t, c.Shutdown(t.Context()))
	})
}

// Shutdown waits for a call that is still asking for its key, and until observers have the end of a call.
func TestClient_Shutdown_waits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, goOn := make(chan struct{}), make(chan struct{})
		var ended gateway.Outcome
		c, err := gateway.New("http://localhost", "", through(respondAlways(500)), gateway.WithAPIKeySource(func(context.Context) (string, error) {
			close(asked)
			<-goOn
			return canary, nil
		}), gateway.WithObserver(gateway.Observer{End: func(_ context.Context, c gateway.Call) {
			time.Sleep(time.Second)
			ended = c.Outcome
		}}))
		require.NoError(t, err)
		go func() { _, _ = c.CreateInvoice(t.Context(), order("A-17")) }()
		<-asked
		done := make(chan error)
		go func() { done <- c.Shutdown(t.Context()) }()
		synctest.Wait()
		close(goOn)
		assert.NoError(t, <-done)
		assert.Equal(t, gateway.OutcomeNotSent, ended, "it had not sent the invoice")
	})
	t.Run("for the slowest of several invoices", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
				wait, err := time.ParseDuration(req.Header.Get("X-Wait"))
				time.Sleep(wait)
				return reply(200, enveloped(invoiceJSON)), err
			}))
			for id, wait := range map[string]string{"A-17": "1s", "A-18": "3s"} {
				go func() { _, _ = c.CreateInvoice(t.Context(), order(id), gateway.WithHeader("X-Wait", wait)) }()
			}
			synctest.Wait()
			begun := time.Now()
			require.NoError(t, c.Shutdown(t.Context()))
			assert.Equal(t, 3*time.Second, time.Since(begun))
		})
	})
	t.Run("not for a context that has ended, if there is no call", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 64 {
			assert.NoError(t, newClient(t, "http://localhost").Shutdown(ctx))
		}
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
	for _, tt := range []struct{ name, key, file string }{
		{"the key in a variable", canary, ""},
		{"the key in a file", "", canary},
		{"a file that ends in a line end", "", canary + "\n"},
		{"a file from Windows", "", canary + "\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := serve(t, respond(201, enveloped(withdrawalJSON)))
			file := ""
			if tt.file != "" {
				file = keyFile(t, tt.file)
			}
			setenv(t, w.URL, tt.key, file)
			c, err := gateway.FromEnv(once())
			require.NoError(t, err)
			assertNoKey(t, c)
			_, err = c.Withdrawal(t.Context(), requestID)
			require.NoError(t, err)
			assert.Equal(t, canary, w.Requests()[0].Header.Get("x-api-key"))
		})
	}
}

// Each way that the environment can be wrong is refused, by the name of the variable or of the option.
func TestFromEnv_refuses(t *testing.T) {
	const url, notLocal = "https://gateway.example", "gateway: new: GATEWAY_BASE_URL: must begin with https://: plain http is for this machine only, or with GATEWAY_PLAIN_HTTP=1"
	source := gateway.WithAPIKeySource(sameKey)
	for _, tt := range []struct {
		name, url, key, file, plain string
		opt                         gateway.Option
		want                        string // no text for a client
	}{
		{"no base URL", "", canary, "", "", once(), "gateway: new: GATEWAY_BASE_URL: is required"},
		{"a bad base URL", "ftp://gateway.example", canary, "", "", once(), "gateway: new: GATEWAY_BASE_URL: must begin with https://"},
		{"plain http", "http://gateway.example", canary, "", "", once(), notLocal},
		{"plain http, which is turned off", "http://gateway.example", canary, "", "0", once(), notLocal},
		{"plain http, which is allowed", "http://gateway.example", canary, "", "1", once(), ""},
		{"plain http, in another word", url, canary, "", "true", once(), "gateway: new: GATEWAY_PLAIN_HTTP: must be 1 or 0"},
		{"a bad key", url, " " + canary, "", "", once(), "gateway: new: GATEWAY_API_KEY: must not begin or end with a space"},
		{"no key", url, "", "", "", once(), "gateway: new: GATEWAY_API_KEY: is required, or GATEWAY_API_KEY_FILE; a client without a key of its own needs WithAPIKeySource or WithoutAPIKey"},
		{"no key in a client without one", url, "", "", "", gateway.WithoutAPIKey(), ""},
		{"a key in quotes", url, `"` + canary + `"`, "", "", once(), "gateway: new: GATEWAY_API_KEY: has quotes: write the key without them"},
		{"a key with its name", url, "GATEWAY_API_KEY=" + canary, "", "", once(), "gateway: new: GATEWAY_API_KEY: has NAME=...: write the value alone"},
		{"both ways of a key", url, canary, "/etc/key", "", once(), "gateway: new: GATEWAY_API_KEY_FILE: must not be set together with GATEWAY_API_KEY"},
		{"a file that is not there", url, "", filepath.Join(t.TempDir(), canary), "", once(), "gateway: new: GATEWAY_API_KEY_FILE: the file cannot be read: no such file or directory"},
		{"a file of two lines", url, "", keyFile(t, canary+"\n"+canary+"\n"), "", once(), "gateway: new: GATEWAY_API_KEY_FILE: the file has several lines: write the key alone"},
		{"no source", url, canary, "", "", gateway.WithAPIKeySource(nil), "gateway: new: WithAPIKeySource: must not be nil"},
		{"a key and a source", url, canary, "", "", source, "gateway: new: GATEWAY_API_KEY: must be empty with WithAPIKeySource"},
		{"a file and a source", url, "", keyFile(t, canary), "", source, "gateway: new: GATEWAY_API_KEY_FILE: must be empty with WithAPIKeySource"},
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
			require.EqualError(t, err, tt.want)
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

// A file without a key is an error that does not have its name, and nothing is sent.
func TestAPIKeyFile_refuses(t *testing.T) {
	t.Parallel()
	const source = "the source of the API key: "
	for _, tt := range []struct {
		name, file, want string
		is               error
	}{
		{"none is there", filepath.Join(t.TempDir(), canary), "the file cannot be read: no such file or directory", fs.ErrNotExist},
		{"a directory", t.TempDir(), "the file cannot be read: it is not a regular file", nil},
		{"a device", "/dev/zero", "the file cannot be read: it is not a regular file", nil},
		{"empty", keyFile(t, ""), "the key in the file is required", nil},
		{"a line end", keyFile(t, "\n"), "the key in the file is required", nil},
		{"a space before the key", keyFile(t, " "+canary), "the key in the file must not begin or end with a space", nil},
		{"a space before the line end", keyFile(t, canary+" \n"), "the key in the file must not begin or end with a space", nil},
		{"an empty line", keyFile(t, canary+"\n\n"), "the file has several lines: write the key alone", nil},
		{"a tab", keyFile(t, "\t"+canary), "the key in the file must be printable ASCII: no line end, tab or other control character", nil},
		{"a byte order mark", keyFile(t, "\ufeff"+canary), "the key in the file must be printable ASCII: no line end, tab or other control character", nil},
		{"two lines", keyFile(t, canary+"\n"+canary), "the file has several lines: write the key alone", nil},
		{"more after the longest key", keyFile(t, strings.Repeat("k", 4096)+"\r\nx"), "the file has several lines: write the key alone", nil},
		{"double quotes", keyFile(t, `"`+canary+"\"\n"), "the file has quotes: write the key without them", nil},
		{"single quotes", keyFile(t, "'"+canary+"'"), "the file has quotes: write the key without them", nil},
		{"nothing in quotes", keyFile(t, `""`), "the file has quotes: write the key without them", nil},
		{"an assignment", keyFile(t, "GATEWAY_API_KEY="+canary+"\n"), "the file has NAME=...: write the value alone", nil},
		{"an assignment in quotes", keyFile(t, `key2="`+canary+`"`), "the file has NAME=...: write the value alone", nil},
		{"an assignment of a shell", keyFile(t, "export _KEY="+canary), "the file has NAME=...: write the value alone", nil},
		{"an assignment with spaces", keyFile(t, "key = "+canary+"=="), "the file has NAME=...: write the value alone", nil},
		{"large", keyFile(t, strings.Repeat("k", 1<<20)), "the key in the file is longer than 4,096 bytes", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, respond(200, ""))
			c, err := gateway.New(w.URL, "", gateway.WithAPIKeySource(gateway.APIKeyFile(tt.file)))
			require.NoError(t, err)
			_, err = c.CreateInvoice(t.Context(), order("A-17"))
			require.ErrorContains(t, err, source+tt.want)
			assert.Equal(t, gateway.OutcomeNotSent, gateway.OutcomeOf(err))
			assert.True(t, tt.is == nil || errors.Is(err, tt.is))
			assertNoKey(t, err)
			assert.Empty(t, w.Requests())
		})
	}
}

// What a key may have in it is no reason to refuse it.
func TestAPIKeyFile_oddKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"k", "c2VjcmV0a2V5MQ==", "c2VjcmV0a2V5MTI=", "a+b/c=", "=", "=key", "a-b=c", "1abc=def", `"key`, `key'`, `"key'`, `"`, `a"b"c`, "key with spaces", "export key",
		strings.Repeat("k", 4096),
	} {
		got, err := gateway.APIKeyFile(keyFile(t, key+"\r\n"))(t.Context())
		require.NoError(t, err, "%.20q", key)
		assert.Equal(t, key, got)
	}
}

// Of a file of any length no more is read than a key can have.
func TestAPIKeyFile_bound(t *testing.T) {
	name := keyFile(t, "")
	require.NoError(t, os.Truncate(name, 64<<20))
	assert.Less(t, measure.Allocated(func() {
		_, err := gateway.APIKeyFile(name)(t.Context())
		assert.Error(t, err)
	}), uint64(1<<20))
}

// A named pipe is refused: one without a writer would hold up the call.
func TestAPIKeyFile_namedPipe(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "key")
	if exec.Command("mkfifo", name).Run() != nil {
		t.Skip("this system has no mkfifo")
	}
	_, err := gateway.APIKeyFile(name)(t.Context())
	assert.EqualError(t, err, "the file cannot be read: it is not a regular file")
}
