package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A password that a URL must escape. No text may have a piece of it.
const (
	canary        = "ZQ7KX@WV9JY/U6HTG"
	canaryEscaped = "ZQ7KX%40WV9JY%2FU6HTG"
)

// pieceOf returns a piece of four characters of the canary that a text has, in any form.
func pieceOf(text string) string {
	for _, form := range []string{canary, canaryEscaped} {
		for i := range len(form) - 3 {
			if strings.Contains(text, form[i:i+4]) {
				return form[i : i+4]
			}
		}
	}
	return ""
}

// However the URL of the database is wrong, no error has a piece of its password; --db takes none.
func TestDatabase_secrets(t *testing.T) {
	services := filepath.Join(t.TempDir(), "services")
	require.NoError(t, os.WriteFile(services, []byte("[good]\nhost=127.0.0.1\nport=1\npassword="+canary+"\n[bad]\npassword="+canary+"\nport=x\n"), 0o600))
	require.NoError(t, os.WriteFile(services+"2", []byte("[worse]\n"+canary+"\n"), 0o600))
	const inUse = "postgres://u:" + canaryEscaped + "@127.0.0.1:1/d"
	for name, r := range map[string]struct {
		url, text string
		code      int
	}{
		"right":                                {inUse, "no connection", exitFailed},
		"postgresql://":                        {"postgresql" + strings.TrimPrefix(inUse, "postgres"), "no connection", exitFailed},
		"several hosts":                        {"postgres://u:" + canaryEscaped + "@127.0.0.1:1,127.0.0.2:1/d", "no connection", exitFailed},
		"a password for each of several hosts": {"postgres://u:ZQ7KX@127.0.0.1:1,u:WV9JY@127.0.0.2:1/d", "", 0},
		"a @ that is not escaped":              {"postgres://u:ssZQ7@KXWV9JY@127.0.0.1:1/d", "", 0},
		"a / that is not escaped":              {"postgres://u:1/ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"a ? that is not escaped":              {"postgres://u:1?ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"a # that is not escaped":              {"postgres://u:1#ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"a % that is not escaped":              {"postgres://u:ZQ7KX%WV9JY@127.0.0.1:1/d", "as %2F and @ as %40", exitUsage},
		"a : that is escaped":                  {"postgres://u%3AZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"no host":                              {"postgres://u:ZQ7KXWV9JY", "as %2F and @ as %40", exitUsage},
		"no slashes":                           {"postgres:u:ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"no scheme":                            {"u:ZQ7KXWV9JY@127.0.0.1:1/d", "the database is postgres://", exitUsage},
		"behind sqlite:":                       {"sqlite:" + inUse, "after sqlite: comes the path", exitUsage},
		"a setting of SQLite":                  {"sqlite:orders.db?password=" + canary, "the file of the database: file does not exist", exitFailed},
		"a password in the query":              {"postgres://127.0.0.1:1/d?user=u&password=ZQ7KX&WV9JY", "", 0},
		"sslpassword":                          {"postgres://u@127.0.0.1:1/d?sslpassword=ZQ7KX", "", 0},
		"keywords":                             {"host=127.0.0.1 port=1 password='" + canary + "'", "the database is postgres://", exitUsage},
		"a wrong setting":                      {inUse + "?sslmode=maybe", "has a setting that cannot be used", exitUsage},
		"a service":                            {"postgres://u@127.0.0.1:1/d?service=good&servicefile=" + services, "no connection", exitFailed},
		"a service with a wrong port":          {"postgres:///?service=bad&servicefile=" + services, "has a setting that cannot be used", exitUsage},
		"a service file with a wrong line":     {"postgres:///?service=worse&servicefile=" + services + "2", "has a setting that cannot be used", exitUsage},
		"MariaDB":                              {"mysql://u:" + canaryEscaped + "@127.0.0.1:1/d", "no connection", exitFailed},
		"MariaDB, a @ that is not escaped":     {"mysql://u:ZQ7@KXWV9JY:1/d", "", 0},
		"MariaDB, a / that is not escaped":     {"mysql://u:1/ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"MariaDB, another setting":             {"mysql://u:" + canaryEscaped + "@127.0.0.1:1/d?ssl=1", "with ?tls=true", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"PGPASSWORD", "PGSERVICE", "PGHOST"} {
				t.Setenv(name, "")
			}
			for _, given := range []struct {
				env  string
				args []string
			}{{r.url + "\r\n", nil}, {"", []string{"--db-file", file(t, r.url+"\n")}}, {"", []string{"--db", r.url}}} {
				t.Setenv(envDB, given.env)
				for _, format := range []string{formatTable, formatJSON} {
					got := call(t.Context(), t, nil, append([]string{"orders", "pending", "-o", format, "--timeout", "10s"}, given.args...)...)
					assert.Empty(t, pieceOf(got.stdout+got.err), got.err)
					assert.NotZero(t, got.code)
					if given.args != nil && given.args[0] == "--db" {
						assert.Equal(t, hasPassword(r.url), strings.Contains(got.err, "--db takes no password"), got.err)
					} else if r.text != "" {
						assert.Equal(t, r.code, got.code, got.err)
						assert.Contains(t, got.err, r.text)
					}
				}
			}
		})
	}
}

// The command reports a wrong database or user in its own words.
func TestDatabase_server(t *testing.T) {
	for _, tt := range []struct{ url, text string }{
		{strings.Replace(postgresURL(t), "/postgres?", "/"+canaryEscaped+"?", 1), "as for a wrong user, password or database: SQLSTATE 3D000"},
		{strings.TrimSuffix(mariaDBURL(t), "shop") + canaryEscaped, "as for a wrong user, password or database: error 1044"},
	} {
		t.Setenv(envDB, tt.url)
		got := call(t.Context(), t, nil, "orders", "pending")
		assert.Equal(t, exitFailed, got.code)
		assert.Contains(t, got.err, tt.text)
		assert.Empty(t, pieceOf(got.err), got.err)
	}
}

func TestHasPassword(t *testing.T) {
	t.Parallel()
	for text, has := range map[string]bool{
		"postgres://shop@db/shop":               false,
		"postgres://shop:secret@db/shop":        true,
		"postgres://shop:@db/shop":              true,
		"postgres://db/shop?password=secret":    true,
		"host=db user=shop Password = 'secret'": true,
		"sqlite:orders.db":                      false,
		"sqlite:/home/a:b@c/password.db":        false,
	} {
		assert.Equal(t, has, hasPassword(text), text)
	}
}
