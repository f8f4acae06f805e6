package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cryptogw/gateway/cmd/internal/cli"
	"github.com/cryptogw/gateway/cmd/internal/cli/clitest"
	"github.com/cryptogw/gateway/cmd/internal/database"
)

// A password that a URL must escape, in every form, and no piece of which any text may have.
const (
	canary     = "ZQ7KX@WV9JY/U6HTG"
	escapedOne = "ZQ7KX%40WV9JY%2FU6HTG"
)

// pieceOf returns a piece of four characters of the canary that a text has, in any form.
func pieceOf(text string) string {
	for _, form := range []string{canary, escapedOne} {
		for i := range len(form) - 3 {
			if strings.Contains(text, form[i:i+4]) {
				return form[i : i+4]
			}
		}
	}
	return ""
}

// A password, or a URL with one, that is typed where something else belongs is in no text.
func TestSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	w := newSQLite(t)
	w.loses(t, "A-17")
	t.Setenv(envDB, w.url)
	check(t, os.WriteFile("f.csv", []byte("order\nA-17\n"), 0o600))
	right := map[string][]string{
		"show": {"A-18"}, "evidence": {"A-18"}, "resolve": {"A-18", "--exists", "--by", "anna"},
		"reconcile": {"--file", "f.csv"}, "prune": {"--older-than", "400d"},
	}
	for _, text := range []string{canary, "postgres://u:" + escapedOne + "@127.0.0.1:1/d", "sk_live_" + strings.ReplaceAll(canary, "/", "")} {
		for _, line := range clitest.Misplaced((&session{}).root(), text, right) {
			if got := call(t.Context(), "", line...); pieceOf(got.stdout+got.err) != "" {
				t.Errorf("%q: %d, %s%s", line, got.code, got.stdout, got.err)
			}
		}
	}
}

// However the URL of the database is wrong, no text has a piece of its password; --db takes none.
func TestSecrets_url(t *testing.T) {
	t.Chdir(t.TempDir())
	services := filepath.Join(t.TempDir(), "services")
	check(t, os.WriteFile(services, []byte("[good]\nhost=127.0.0.1\nport=1\npassword="+canary+"\n[bad]\npassword="+canary+"\nport=x\n"), 0o600))
	check(t, os.WriteFile(services+"2", []byte("[worse]\n"+canary+"\n"), 0o600))
	const inUse = "postgres://u:" + escapedOne + "@127.0.0.1:1/d"
	for name, r := range map[string]struct {
		url, text string
		code      int
	}{
		"right":                                 {inUse, "no connection: ", cli.ExitFailed},
		"postgresql://":                         {"postgresql" + strings.TrimPrefix(inUse, "postgres"), "no connection: ", cli.ExitFailed},
		"several hosts":                         {"postgres://u:" + escapedOne + "@127.0.0.1:1,127.0.0.2:1/d", "no connection: ", cli.ExitFailed},
		"a password for each of several hosts":  {"postgres://u:ZQ7KX@127.0.0.1:1,u:WV9JY@127.0.0.2:1/d", "", 0},
		"a @ that is not escaped":               {"postgres://u:ssZQ7@KXWV9JY@127.0.0.1:1/d", "", 0},
		"a / that is not escaped":               {"postgres://u:1/ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"a ? that is not escaped":               {"postgres://u:1?ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"a # that is not escaped":               {"postgres://u:1#ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"a % that is not escaped":               {"postgres://u:ZQ7KX%WV9JY@127.0.0.1:1/d", "as %2F and @ as %40", cli.ExitUsage},
		"a [ that is not escaped":               {"postgres://u:[ZQ7KX@127.0.0.1:1/d", "", 0},
		"a : that is escaped":                   {"postgres://u%3AZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"no host":                               {"postgres://u:ZQ7KXWV9JY", "as %2F and @ as %40", cli.ExitUsage},
		"no slashes":                            {"postgres:u:ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"one slash":                             {"postgres:/u:ZQ7KXWV9JY@127.0.0.1:1/d", "", 0},
		"no scheme":                             {"u:ZQ7KXWV9JY@127.0.0.1:1/d", "the database is postgres://", cli.ExitUsage},
		"a scheme in capitals":                  {"POSTGRES://u:ZQ7KXWV9JY@127.0.0.1:1/d", "the database is postgres://", cli.ExitUsage},
		"behind sqlite:":                        {"sqlite:" + inUse, "after sqlite: comes the path", cli.ExitUsage},
		"a setting of SQLite":                   {"sqlite:orders.db?password=" + canary, "the file of the database: file does not exist", cli.ExitFailed},
		"a password in the query":               {"postgres://127.0.0.1:1/d?user=u&password=ZQ7KX&WV9JY", "", 0},
		"its name in another form":              {"postgres://127.0.0.1:1/d?user=u&pass%77ord=ZQ7KX", "", 0},
		"a parameter without =":                 {"postgres://u@127.0.0.1:1/d?ZQ7KXWV9JY", "", 0},
		"sslpassword":                           {"postgres://u@127.0.0.1:1/d?sslpassword=ZQ7KX", "", 0},
		"keywords":                              {"host=127.0.0.1 port=1 password='" + canary + "'", "the database is postgres://", cli.ExitUsage},
		"a wrong setting":                       {inUse + "?sslmode=maybe", "has a setting that cannot be used", cli.ExitUsage},
		"a wrong port":                          {"postgres://u:" + escapedOne + "@127.0.0.1:0/d", "has a setting that cannot be used", cli.ExitUsage},
		"a service":                             {"postgres://u@127.0.0.1:1/d?service=good&servicefile=" + services, "no connection: ", cli.ExitFailed},
		"a service with a wrong port":           {"postgres:///?service=bad&servicefile=" + services, "has a setting that cannot be used", cli.ExitUsage},
		"a service file with a line that is no": {"postgres:///?service=worse&servicefile=" + services + "2", "has a setting that cannot be used", cli.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"PGPASSWORD", "PGSERVICE", "PGHOST"} {
				t.Setenv(name, "")
			}
			check(t, os.WriteFile("url", []byte(r.url+"\n"), 0o600))
			for _, given := range []struct {
				env  string
				args []string
			}{{r.url + "\r\n", nil}, {"", []string{"--db-file", "url"}}, {"", []string{"--db", r.url}}} {
				t.Setenv(envDB, given.env)
				for _, format := range []string{"table", "json"} {
					got := call(t.Context(), "", append([]string{"pending", "-o", format}, given.args...)...)
					if pieceOf(got.stdout+got.err) != "" || got.code == cli.ExitDone {
						t.Errorf("%d, %s%s", got.code, got.stdout, got.err)
					}
					if len(given.args) > 0 && given.args[0] == "--db" {
						if database.HasPassword(r.url) {
							want(t, got, cli.ExitUsage, "--db takes no password")
						}
					} else if r.text != "" {
						want(t, got, r.code, r.text)
					}
				}
			}
		})
	}
}

// What the server says of a wrong database and user is told in words of our own.
func TestSecrets_server(t *testing.T) {
	for _, tt := range []struct{ url, text string }{
		{strings.Replace(newPostgres(t).url, "/postgres?", "/"+escapedOne+"?", 1), "the server has no such database (SQLSTATE 3D000)"},
		{strings.TrimSuffix(newMariaDB(t).url, "shop") + escapedOne, "the server refuses the database to the user"},
	} {
		t.Setenv(envDB, tt.url)
		got := call(t.Context(), "", "pending")
		want(t, got, cli.ExitFailed, tt.text)
		if pieceOf(got.err) != "" {
			t.Error(got.err)
		}
	}
}

func TestHasPassword(t *testing.T) {
	for text, has := range map[string]bool{
		"postgres://shop@db/shop":               false,
		"postgres://shop:secret@db/shop":        true,
		"postgres://shop:@db/shop":              true,
		"postgres://db/shop?password=secret":    true,
		"host=db user=shop Password = 'secret'": true,
		"sqlite:orders.db":                      false,
		"sqlite:/home/a:b@c/password.db":        false,
	} {
		if database.HasPassword(text) != has {
			t.Errorf("%s: %t", text, !has)
		}
	}
}
