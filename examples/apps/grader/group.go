package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A result is one check.
type result struct {
	name   string
	passed bool
	why    string // of a failure
}

// A group is some of the checks, with a world of its own.
type group struct {
	*world
	title   string
	run     func(*group)
	results []result
	secret  string // a part of the key
	dir     string // of the database
	leaks   leaks
}

// is records a check: a sentence, and why it is not true; "" for a check that passes.
func (g *group) is(name, why string) {
	g.results = append(g.results, result{name, why == "", why})
}

// unless is "" if something is true, and otherwise a text about what the buyer was told.
func unless(isTrue bool, told ...any) string {
	if isTrue {
		return ""
	}
	return fmt.Sprintf("the buyer was told: %v", told)
}

// first is the first text that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// start starts the gateway and the candidate.
func (g *group) start(c candidate) (err error) {
	g.secret = rand.Text()
	key := `key/"+<&%41-` + g.secret // which has another form in JSON, in HTML and in a URL
	if g.dir, err = os.MkdirTemp("", "grader"); err != nil {
		return err
	}
	gateway, err := newStandIn(key)
	if err != nil {
		return err
	}
	addr, err := freeAddress()
	if err != nil {
		return err
	}
	database := c.database
	if database == "" {
		database = "file:" + filepath.Join(g.dir, "shop.db")
	}
	program := newProcess(c.command, addr, append([]string{
		"SHOP_ADDR=" + addr, "DATABASE_URL=" + database,
		"GATEWAY_BASE_URL=" + gateway.url(), "GATEWAY_API_KEY=" + key,
	}, c.settings...)...)
	g.world = &world{gateway: gateway, program: program, shop: c.shop(addr), verdicts: map[string]verdict{}}
	return program.start()
}

// restart starts the candidate again, which has ended.
func (g *group) restart() {
	if err := g.program.start(); err != nil {
		_, _ = fmt.Fprintln(g.program, err) // the requests that follow fail
	}
}

func (g *group) stop() error {
	if g.world != nil {
		g.program.kill()
		g.gateway.close()
		g.gateway.gw.Close()
	}
	return os.RemoveAll(g.dir)
}

// grade runs the checks of a group over a candidate.
func (g *group) grade(c candidate) (err error) {
	defer func() { err = errors.Join(err, g.stop()) }()
	if err := g.start(c); err != nil {
		return err
	}
	g.run(g)
	g.program.stop()
	return g.search()
}

// leaks are where the key was found; "" for nowhere.
type leaks struct{ answers, files string }

// search looks for the key in what the candidate has written.
func (g *group) search() error {
	secret := []byte(g.secret)
	if i := bytes.Index(g.seen.Bytes(), secret); i >= 0 {
		g.leaks.answers = fmt.Sprintf("a response to a buyer of the group %q has it", g.title)
	}
	if strings.Contains(g.program.log(), g.secret) {
		g.leaks.files = fmt.Sprintf("the log of the group %q has it", g.title)
	}
	return filepath.WalkDir(g.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path) // #nosec G122 G304 -- of the candidate's own directory
		if bytes.Contains(text, secret) {
			g.leaks.files = "the database has it: " + filepath.Base(path)
		}
		return err
	})
}
