package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
)

// The check asks the gateway, and the table if a database is named. Its exit code is the reason of a failure.
func TestCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	migrate := func(gw *gatewaytest.Server) { assert.Zero(t, call(t, gw, "orders migrate").code) }
	for _, tt := range []struct {
		name, database string
		change         func(*gatewaytest.Server)
		code           int
		stdout, err    string
	}{
		{"a key", "", nil, exitDone, "The gateway accepts the key.\n", ""},
		{"no key", "", func(gw *gatewaytest.Server) { gw.APIKey = "" }, exitDone, "The gateway can be reached.\n", ""},
		{"another key", "", func(gw *gatewaytest.Server) { gw.APIKey += "x" }, exitRefused, "", "401"},
		{"no response", "", func(gw *gatewaytest.Server) { gw.Close() }, exitNotSent, "", "dial"},
		{"no table", file, nil, exitFailed, "", "file does not exist"},
		{"a table", file, migrate, exitDone, "The gateway accepts the key. The table gateway_orders can be used.\n", ""},
	} {
		gw := standIn(t)
		t.Setenv(envDB, "")
		if tt.database != "" {
			t.Setenv(envDB, "sqlite:"+tt.database)
		}
		if tt.change != nil {
			tt.change(gw)
		}
		got := call(t, gw, "check")
		assert.Equal(t, tt.code, got.code, "%s: %s", tt.name, got.err)
		assert.Equal(t, tt.stdout, got.stdout, tt.name)
		assert.Contains(t, got.err, tt.err, tt.name)
	}
}

func TestVersion(t *testing.T) {
	for _, line := range []string{"version", "--version"} {
		assert.Regexp(t, `^gateway version v`+gateway.Version+`.*, go1\S+, \w+/\w+\n$`, call(t, nil, line).stdout)
	}
}
