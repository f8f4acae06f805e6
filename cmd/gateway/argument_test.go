package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway/gatewaytest"
)

// A key that is typed where a command, an argument or a flag belongs is in no text, whether
// it is the key of the settings or not.
func TestRun_keyAsArgument(t *testing.T) {
	for source, key := range map[string]string{
		"": "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "digits": "4242", "a short one": "Ab",
		"long": strings.Repeat("abcdefg", 4), envAPIKey: "its-name-is-long", envAPIKeyFile: "its-file-has-it",
	} {
		for _, args := range [][]string{
			{key},
			{"-" + key},
			{"--" + key},
			{"help", key},
			{"help", "coins", key},
			{"invoice", key},
			{"withdrawal", key, "w-1"},
			{"balance", key},
			{"balance", "--", key},
			{"balance", "-" + key},
			{"balance", "--" + key},
			{"balance", "---" + key},
			{"balance", "-" + key + "=1"},
			{"balance", "-o", key},
			{"balance", "-o=" + key},
			{"balance", "-timeout", key},
			{"balance", "-plain-http=" + key},
			{"invoice", "create", "-price", key + "-"},
			{"withdrawal", "wait", key, key},
			{"mock", key},
			{"mock", "-addr", key},
			{"mock", "-host", key + ":80"},
			{"mock", "-key", key + " "},
			{"mock", "-seed", key},
			{"mock", "-fault", key},
			{"mock", "-fault", key + ":1:stall"},
			{"mock", "-fault", "any:" + key + "-:stall"},
			{"mock", "-fault", "any:1:" + key},
			{"mock", "-fault", "any:1:refuse=" + key},
			{"mock", "-fault", "any:1:slow-body=" + key},
		} {
			setKey(t, source, key)
			var stdout, stderr strings.Builder
			assert.Equal(t, exitUsage, run(t.Context(), args, console{out: &stdout, err: &stderr}), args)
			assert.NotContains(t, stderr.String(), key, args)
			assert.Empty(t, stdout.String(), args)
		}
	}
}

// The host of -addr is looked up, and a name that is not found is in the error of package net.
func TestMock_addrKey(t *testing.T) {
	setKey(t, "", "")
	for host, shown := range map[string]bool{
		"sk_live_" + strings.Repeat("4eC39HqLyjW", 6): false, // no name has so long a label: no server is asked
		"203.0.113.1": true, // of documentation, and of no machine
	} {
		got := call(t.Context(), t, nil, "mock", "-addr", host+":0")
		assert.Equal(t, exitFailed, got.code, host)
		assert.Contains(t, got.err, "the address of -addr cannot be used: listen tcp", host)
		assert.Equal(t, shown, strings.Contains(got.err, host), got.err)
	}
}

// setKey configures a gateway that cannot be reached, and a key in one of the variables.
func setKey(t *testing.T, source, key string) {
	t.Helper()
	setenv(t, &gatewaytest.Server{URL: "https://gateway.invalid"})
	switch source {
	case envAPIKey:
		t.Setenv(envAPIKey, key)
	case envAPIKeyFile:
		name := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(name, []byte(key+"\r\n"), 0o600))
		t.Setenv(envAPIKeyFile, name)
	}
}

// What is only a typing error is shown, unless it is a part of the key or the other way
// round; nothing is if the key is not known.
func TestNamed(t *testing.T) {
	setKey(t, "", "")
	for _, text := range []string{"invocie", "with-drawal", strings.Repeat("a", maxShown)} {
		assert.Equal(t, `"`+text+`"`, named(text, "it"))
	}
	for _, text := range []string{"Invoice", "w-1", "a b", "é", strings.Repeat("a", maxShown+1)} {
		assert.Equal(t, "it", named(text, "it"))
	}
	for _, source := range []string{envAPIKey, envAPIKeyFile} {
		setKey(t, source, "a-secret")
		for text, want := range map[string]string{"a-secret": "it", "secret": "it", "-a-secret-": "it", "secretary": `"secretary"`} {
			assert.Equal(t, want, named(text, "it"), source)
		}
	}
	setKey(t, "", "")
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, make([]byte, maxKeyFile+1), 0o600))
	for _, name := range []string{t.TempDir(), os.DevNull, large, "absent"} {
		t.Setenv(envAPIKeyFile, name)
		assert.Equal(t, "it", named("invocie", "it"), name)
	}
}
