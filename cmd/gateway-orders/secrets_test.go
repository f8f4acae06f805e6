package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// However the password is given, in the right place or in a wrong one, no output has a piece of it.
func TestSecrets_pieces(t *testing.T) {
	t.Chdir(t.TempDir())
	services := filepath.Join(t.TempDir(), "services")
	check(t, os.WriteFile(services, []byte("[good]\nhost=127.0.0.1\nport=1\npassword="+canary+"\n[bad]\npassword="+canary+"\nport=x\n"), 0o600))
	check(t, os.WriteFile(services+"2", []byte("[worse]\n"+canary+"\n"), 0o600))
	w := newSQLite(t)
	w.loses(t, "A-17")
	const inUse = "postgres://u:" + escapedOne + "@127.0.0.1:1/d"
	type row struct {
		line []string
		env  map[string]string
		text string
	}
	db := func(dsn, text string) row { return row{[]string{"-db", dsn, "pending"}, nil, text} }
	for name, r := range map[string]row{
		"a URL that is right":                   db(inUse, "-db cannot be used"),
		"a postgresql:// URL":                   db("postgresql"+strings.TrimPrefix(inUse, "postgres"), "-db cannot be used"),
		"several hosts":                         db("postgres://u:"+escapedOne+"@127.0.0.1:1,127.0.0.2:1/d", "-db cannot be used"),
		"several hosts, each with the password": db("postgres://u:ZQ7KX@127.0.0.1:1,u:WV9JY@127.0.0.2:1/d", "must be written %40"),
		"a @ that is not escaped":               db("postgres://u:ssZQ7@KXWV9JY@127.0.0.1:1/d", "a @ in the user or the password must be written %40"),
		"a @ in a postgresql:// URL":            db("postgresql://u:ssZQ7@KXWV9JY@127.0.0.1:1/d", "must be written %40"),
		"a / that is not escaped":               db("postgres://u:1/ZQ7KXWV9JY@127.0.0.1:1/d", "is written with %"),
		"a ? that is not escaped":               db("postgres://u:1?ZQ7KXWV9JY@127.0.0.1:1/d", "is written with %"),
		"a # that is not escaped":               db("postgres://u:1#ZQ7KXWV9JY@127.0.0.1:1/d", "is written with %"),
		"a % that is not escaped":               db("postgres://u:ZQ7KX%WV9JY@127.0.0.1:1/d", "-db"),
		"a [ that is not escaped":               db("postgres://u:[ZQ7KX@127.0.0.1:1/d", "-db"),
		"no host after the password":            db("postgres://u:ZQ7KXWV9JY", "-db"),
		"a : that is escaped":                   db("postgres://u%3AZQ7KXWV9JY@127.0.0.1:1/d", "the : before the password"),
		"no slashes":                            db("postgres:u:ZQ7KXWV9JY@127.0.0.1:1/d", "-db is not a URL"),
		"one slash":                             db("postgres:/u:ZQ7KXWV9JY@127.0.0.1:1/d", "-db is not a URL"),
		"no scheme":                             db("u:ZQ7KXWV9JY@127.0.0.1:1/d", "-db is postgres://"),
		"a scheme in capitals":                  db("POSTGRES://u:ZQ7KXWV9JY@127.0.0.1:1/d", "-db is postgres://"),
		"a URL behind sqlite:":                  db("sqlite:"+inUse, "-db is sqlite: and the path"),
		"a setting of SQLite":                   db("sqlite:orders.db?password="+canary, "-db is sqlite: and the path"),
		"a password in the query":               db("postgres://127.0.0.1:1/d?user=u&password=ZQ7KX&WV9JY", "put the password into PGPASSWORD"),
		"its name in another form":              db("postgres://127.0.0.1:1/d?user=u&pass%77ord=ZQ7KX", "put the password into PGPASSWORD"),
		"its name in capitals":                  db("postgres://127.0.0.1:1/d?user=u&PASSWORD=ZQ7KX", "put the password into PGPASSWORD"),
		"a parameter without =":                 db("postgres://u@127.0.0.1:1/d?ZQ7KXWV9JY", "-db has a parameter without ="),
		"sslpassword":                           db("postgres://u@127.0.0.1:1/d?sslpassword=ZQ7KX", "put the password into PGPASSWORD"),
		"keywords":                              db("host=127.0.0.1 port=1 password='"+canary+"'", "-db is postgres://"),
		"keywords that are split": {
			[]string{"-db", "host=127.0.0.1", "password=" + canary, "pending"}, nil, "there is no command of that name",
		},
		"keywords behind postgres:":               db("postgres: password="+canary, "-db is not a URL"),
		"a wrong setting":                         db(inUse+"?sslmode=maybe", "-db has a setting that cannot be used"),
		"a wrong port":                            db("postgres://u:"+escapedOne+"@127.0.0.1:0/d", "-db has a setting that cannot be used"),
		"a port that is the password":             db("postgres://u:"+escapedOne, "-db"),
		"a service":                               db("postgres://u@127.0.0.1:1/d?service=good&servicefile="+services, "-db cannot be used"),
		"a service with a wrong port":             db("postgres:///?service=bad&servicefile="+services, "-db has a setting that cannot be used"),
		"a service file with a line that is none": db("postgres:///?service=worse&servicefile="+services+"2", "-db has a setting that cannot be used"),
		"a service of the environment": {
			[]string{"-db", "postgres:///", "pending"}, map[string]string{"PGSERVICE": "bad", "PGSERVICEFILE": services}, "-db has a setting that cannot be used",
		},
		"PGPASSWORD": {
			[]string{"-db", "postgres://u@127.0.0.1:1/d", "pending"}, map[string]string{"PGPASSWORD": canary, "PGSSLPASSWORD": canary}, "-db cannot be used",
		},
		"a line end in the environment": {[]string{"pending"}, map[string]string{envDB: inUse + "\n"}, "-db has a line end"},
		"a line end of Windows":         {[]string{"pending"}, map[string]string{envDB: inUse + "\r\n"}, "-db has a line end"},
		"a URL instead of a command":    {[]string{inUse, "pending"}, nil, "there is no command of that name"},
		"a URL of help":                 {[]string{"help", inUse}, nil, "there is no command of that name"},
		"a URL behind a command":        {[]string{"pending", inUse}, nil, "there is one argument too many"},
		"a URL that is a flag":          {[]string{"pending", "-" + inUse}, nil, "a flag is not defined"},
		"a URL that is no flag":         {[]string{"pending", "---" + inUse}, nil, "bad flag syntax"},
		"a URL without slashes for -n":  {[]string{"pending", "-n", "postgres:u:" + canary}, nil, "invalid value for flag -n"},
		"a URL for -n":                  {[]string{"pending", "-n=" + inUse}, nil, "invalid value for flag -n"},
		"a URL for a switch":            {[]string{"resolve", "-exists=" + inUse}, nil, "invalid boolean value for -exists"},
		"a URL for -timeout":            {[]string{"pending", "-timeout", inUse}, nil, "for flag -timeout: it is a duration"},
		"a URL for -o":                  {[]string{"-o", inUse, "pending"}, nil, "for flag -o: it is table"},
		"a URL for -table":              {[]string{"-db", w.url, "pending", "-table", inUse}, nil, "-table: "},
		"a URL for -after":              {[]string{"-db", w.url, "pending", "-after", inUse}, nil, "-after is not a place"},
		"a URL for an order":            {[]string{"-db", w.url, "show", inUse}, nil, "has no order"},
		"keywords for an order":         {[]string{"-db", w.url, "show", "host=h password=" + canary}, nil, "has no order"},
		"a URL for -merchant":           {[]string{"-db", w.url, "show", "A-17", "-merchant", inUse}, nil, "has no order"},
		"a URL for -file":               {[]string{"-db", w.url, "reconcile", "-format", "csv", "-file", inUse}, nil, "-file: "},
		"a URL for -invoice":            {[]string{"-db", w.url, "resolve", "A-17", "-exists", "-by", "anna", "-invoice", inUse}, nil, "-invoice: "},
		"a URL for -token":              {[]string{"-db", w.url, "resolve", "-token", inUse, "-exists", "-by", "anna"}, nil, "-token is not a token"},
		"a URL for -state":              {[]string{"-db", w.url, "export", "-state", inUse}, nil, "-state is free"},
		"a URL for a shell":             {[]string{"completion", inUse}, nil, "gateway-orders completion: "},
		"the help":                      {[]string{"-db", inUse, "-table", inUse, "pending", "-h"}, map[string]string{envDB: inUse}, "usage: "},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{envDB, "PGPASSWORD", "PGSERVICE"} {
				t.Setenv(name, "")
			}
			for name, value := range r.env {
				t.Setenv(name, value)
			}
			for _, more := range [][]string{nil, {"-o", "json"}} {
				got := call(t.Context(), "", append(slices.Clone(more), r.line...)...)
				if piece := pieceOf(got.stdout + got.err); piece != "" || !strings.Contains(got.stdout+got.err, r.text) {
					t.Errorf("%d, %q, no %q in\n%s%s", got.code, piece, r.text, got.stdout, got.err)
				}
			}
		})
	}
}
