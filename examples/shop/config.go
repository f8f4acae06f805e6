package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cryptogw/gateway"
)

// A config is what the environment says of the shop itself. What it says of
// the gateway is read by [gateway.FromEnv].
type config struct {
	addr     string        // SHOP_ADDR
	database string        // DATABASE_URL: postgres://… or file:…
	password string        // SHOP_ADMIN_PASSWORD
	made     bool          // whether the password was made up here
	patience time.Duration // SHOP_INVOICE_TIMEOUT: how long one attempt of an invoice may take

	page       time.Duration // how long a page waits for the database and the gateway
	rounds     int           // how slow a guess of the password is
	ratesTTL   time.Duration // how long rates are used before they are asked for again
	ratesStale time.Duration // from which age on the page says that they are old
	tick       time.Duration // how often live numbers are sent
}

const minPassword = 12

func configFromEnv() (config, error) {
	cfg := config{
		addr:     cmp.Or(os.Getenv("SHOP_ADDR"), "127.0.0.1:8080"),
		database: cmp.Or(os.Getenv("DATABASE_URL"), defaultDatabase()),
		password: os.Getenv("SHOP_ADMIN_PASSWORD"),
		page:     10 * time.Second, rounds: guessRounds, ratesTTL: 5 * time.Second, ratesStale: 30 * time.Second, tick: 2 * time.Second,
	}
	var err error
	if cfg.patience, err = time.ParseDuration(cmp.Or(os.Getenv("SHOP_INVOICE_TIMEOUT"), "15s")); err != nil {
		return cfg, fmt.Errorf("SHOP_INVOICE_TIMEOUT: %w", err)
	}
	if cfg.patience < time.Second || cfg.patience > time.Minute {
		return cfg, errors.New("SHOP_INVOICE_TIMEOUT must be from 1s to 1m")
	}
	if cfg.password == "" {
		cfg.password, cfg.made = rand.Text(), true
	}
	if utf8.RuneCountInString(strings.TrimSpace(cfg.password)) < minPassword {
		return cfg, fmt.Errorf("SHOP_ADMIN_PASSWORD must have at least %d characters, spaces around them not counted", minPassword)
	}
	return cfg, nil
}

// defaultDatabase keeps what the demo makes up apart from real orders.
func defaultDatabase() string {
	if os.Getenv("GATEWAY_BASE_URL") == "" {
		return "file:demo.db"
	}
	return "file:shop.db"
}

// retry is how patiently the gateway is called. It bounds how long an invoice
// can be under way, which the lease of the order guard rests on.
func (c config) retry() gateway.RetryPolicy {
	return gateway.RetryPolicy{
		MaxAttempts: 3, MaxDelay: 2 * time.Second, MaxRetryAfter: 2 * time.Second,
		AttemptTimeout: 5 * time.Second, InvoiceTimeout: c.patience,
	}
}

// lease is longer than any invoice can be under way.
func (c config) lease() time.Duration {
	policy := c.retry()
	return time.Duration(policy.MaxAttempts)*(policy.InvoiceTimeout+policy.MaxDelay) + 2*time.Second
}

// longest is how long a request can take: an invoice, its record and a page.
func (c config) longest() time.Duration { return c.lease() + 20*time.Second }

// greeting is the one line that a shop prints when it opens.
func (c config) greeting(addr net.Addr, demo bool) string {
	which, where, password := "the one of GATEWAY_BASE_URL", "PostgreSQL", "that of SHOP_ADMIN_PASSWORD" // #nosec G101 -- a name, not a password
	if demo {
		which = "a stand-in in this process, all made up"
	}
	if path, ok := strings.CutPrefix(c.database, "file:"); ok {
		where = "SQLite, " + path
	}
	if c.made {
		password = c.password
	}
	return fmt.Sprintf("http://%s is open (gateway: %s; orders: %s; merchant: /admin, password: %s)", addr, which, where, password)
}
