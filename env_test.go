package gateway_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/internal/testing/measure"
)

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

func TestFromEnv_WithoutAPIKey(t *testing.T) {
	w := serve(t, respond(200, enveloped(ratesJSON)))
	setenv(t, w.URL, "", "")
	c, err := gateway.FromEnv(gateway.WithoutAPIKey())
	require.NoError(t, err)
	_, err = c.ExchangeRates(t.Context())
	require.NoError(t, err)
	_, err = c.Withdrawal(t.Context(), requestID)
	assert.ErrorIs(t, err, gateway.ErrMissingAPIKey)
}

func TestFromEnv_refuses(t *testing.T) {
	const url = "https://gateway.example"
	for _, tt := range []struct{ name, url, key, file, want string }{
		{"no base URL", "", canary, "", "gateway: new: GATEWAY_BASE_URL: is required"},
		{"a bad base URL", "ftp://gateway.example", canary, "", "gateway: new: GATEWAY_BASE_URL: must begin with https://"},
		{"plain http", "http://gateway.example", canary, "", "gateway: new: GATEWAY_BASE_URL: must begin with https://: plain http is for this machine only, or with GATEWAY_PLAIN_HTTP=1"},
		{"a bad key", url, " " + canary, "", "gateway: new: GATEWAY_API_KEY: must not begin or end with a space"},
		{"no key", url, "", "", "gateway: new: GATEWAY_API_KEY: is required, or GATEWAY_API_KEY_FILE; a client without a key of its own needs WithAPIKeySource or WithoutAPIKey"},
		{"a key in double quotes", url, `"` + canary + `"`, "", "gateway: new: GATEWAY_API_KEY: has quotes: write the key without them"},
		{"a key in single quotes", url, "'" + canary + "'", "", "gateway: new: GATEWAY_API_KEY: has quotes: write the key without them"},
		{"a key with its name", url, "GATEWAY_API_KEY=" + canary, "", "gateway: new: GATEWAY_API_KEY: has NAME=...: write the value alone"},
		{"a line of a shell script", url, "export KEY=" + canary, "", "gateway: new: GATEWAY_API_KEY: has NAME=...: write the value alone"},
		{"both ways of a key", url, canary, "/etc/key", "gateway: new: GATEWAY_API_KEY_FILE: must not be set together with GATEWAY_API_KEY"},
		{"a file that is not there", url, "", filepath.Join(t.TempDir(), canary), "gateway: new: GATEWAY_API_KEY_FILE: the file cannot be read: no such file or directory"},
		{"a directory", url, "", t.TempDir(), "gateway: new: GATEWAY_API_KEY_FILE: the file cannot be read: it is not a regular file"},
		{"an empty file", url, "", keyFile(t, ""), "gateway: new: GATEWAY_API_KEY_FILE: the key in the file is required"},
		{"a file of a line end", url, "", keyFile(t, "\n"), "gateway: new: GATEWAY_API_KEY_FILE: the key in the file is required"},
		{"a file of two lines", url, "", keyFile(t, canary+"\n"+canary+"\n"), "gateway: new: GATEWAY_API_KEY_FILE: the file has several lines: write the key alone"},
		{"a file with a space before its line end", url, "", keyFile(t, canary+" \n"), "gateway: new: GATEWAY_API_KEY_FILE: the key in the file must not begin or end with a space"},
		{"a file with a space before the key", url, "", keyFile(t, " "+canary), "gateway: new: GATEWAY_API_KEY_FILE: the key in the file must not begin or end with a space"},
		{"a file with an empty line", url, "", keyFile(t, canary+"\n\n"), "gateway: new: GATEWAY_API_KEY_FILE: the file has several lines: write the key alone"},
		{"a large file", url, "", keyFile(t, strings.Repeat("k", 1<<20)), "gateway: new: GATEWAY_API_KEY_FILE: the key in the file is longer than 4,096 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setenv(t, tt.url, tt.key, tt.file)
			c, err := gateway.FromEnv()
			assert.Nil(t, c)
			require.EqualError(t, err, tt.want)
			assert.ErrorIs(t, err, gateway.ErrInvalidArgument)
			assertNoKey(t, err)
		})
	}
}

// The longest key there is may stand in a file from Windows.
func TestFromEnv_theLongestKey(t *testing.T) {
	setenv(t, "https://gateway.example", "", keyFile(t, strings.Repeat("k", 4096)+"\r\n"))
	_, err := gateway.FromEnv()
	assert.NoError(t, err)
}

// a key that is replaced in its file is that of the next call.
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

// a file without a key is an error, in which its name is not, and nothing is sent.
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

// A key's source and a key's variable are two sources.
func TestFromEnv_options(t *testing.T) {
	setenv(t, "https://gateway.example", canary, "")
	_, err := gateway.FromEnv(gateway.WithAPIKeySource(nil))
	assert.EqualError(t, err, "gateway: new: WithAPIKeySource: must not be nil")
	_, err = gateway.FromEnv(gateway.WithAPIKeySource(sameKey))
	assert.EqualError(t, err, "gateway: new: GATEWAY_API_KEY: must be empty with WithAPIKeySource")
	setenv(t, "https://gateway.example", "", keyFile(t, canary))
	_, err = gateway.FromEnv(gateway.WithAPIKeySource(sameKey))
	assert.EqualError(t, err, "gateway: new: GATEWAY_API_KEY_FILE: must be empty with WithAPIKeySource")
}

func TestFromEnv_plainHTTP(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "0": false, "": false, "true": false} {
		setenv(t, "http://gateway.example", canary, "")
		t.Setenv("GATEWAY_PLAIN_HTTP", value)
		_, err := gateway.FromEnv()
		assert.Equal(t, want, err == nil, "%q", value)
		if value == "true" {
			assert.ErrorContains(t, err, "GATEWAY_PLAIN_HTTP")
		}
	}
}
