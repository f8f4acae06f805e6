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

	"github.com/cryptogw/gateway"
	"golang.org/x/crypto/bcrypt"
)

// A config holds the shop's own settings from the environment. The settings of the
// gateway are read by [gateway.FromEnv].
type config struct {
	addr           string        // SHOP_ADDR
	metricsAddr    string        // SHOP_METRICS_ADDR
	database       string        // DATABASE_URL: postgres://… or file:…
	merchants      merchants     // SHOP_MERCHANTS
	password       string        // of the merchant "demo", if SHOP_MERCHANTS is not set
	fields         paymentFields // SHOP_INVOICE_ADDRESS and so on
	invoiceTimeout time.Duration // SHOP_INVOICE_TIMEOUT: the timeout of one attempt to create an invoice

	pageTimeout     time.Duration // the timeout of a page for the database and the gateway
	ratesTTL        time.Duration // how long rates are cached
	ratesStaleAfter time.Duration // the age from which rates fix no amount
}

// configFromEnv reads the settings. The defaults of the demo are for the stand-in.
func configFromEnv(demo bool) (config, error) {
	file, defaults := "file:shop.db", paymentFields{}
	if demo {
		file, defaults = "file:demo.db", demoFields()
	}
	cfg := config{
		addr:        cmp.Or(os.Getenv("SHOP_ADDR"), "127.0.0.1:8080"),
		metricsAddr: os.Getenv("SHOP_METRICS_ADDR"),
		database:    cmp.Or(os.Getenv("DATABASE_URL"), file),
		pageTimeout: 10 * time.Second, ratesTTL: 5 * time.Second, ratesStaleAfter: 30 * time.Second,
	}
	var err error
	if cfg.fields, err = fieldsFromEnv(defaults); err != nil {
		return cfg, err
	}
	if cfg.invoiceTimeout, err = time.ParseDuration(cmp.Or(os.Getenv("SHOP_INVOICE_TIMEOUT"), "15s")); err != nil {
		return cfg, fmt.Errorf("SHOP_INVOICE_TIMEOUT: %w", err)
	}
	if cfg.invoiceTimeout < time.Second || cfg.invoiceTimeout > time.Minute {
		return cfg, errors.New("SHOP_INVOICE_TIMEOUT must be from 1s to 1m")
	}
	lines := os.Getenv("SHOP_MERCHANTS")
	if lines == "" {
		cfg.password = rand.Text()
		hash, err := bcrypt.GenerateFromPassword([]byte(cfg.password), bcrypt.DefaultCost)
		if err != nil {
			return cfg, err
		}
		lines = "demo:" + string(hash)
	}
	cfg.merchants, err = parseMerchants(lines)
	return cfg, err
}

// retry is the retry policy of the gateway client. It bounds the duration of
// CreateInvoice; the lease of the order guard depends on that bound.
func (c config) retry() gateway.RetryPolicy {
	return gateway.RetryPolicy{
		MaxAttempts: 3, MaxDelay: 2 * time.Second, MaxRetryAfter: 2 * time.Second,
		AttemptTimeout: 5 * time.Second, InvoiceTimeout: c.invoiceTimeout,
	}
}

// lease is longer than CreateInvoice can take, with what the order guard may take before
// it.
func (c config) lease() time.Duration {
	policy := c.retry()
	return time.Duration(policy.MaxAttempts)*(policy.InvoiceTimeout+policy.MaxDelay) + 12*time.Second
}

// startupLine is the line that the shop prints when it starts.
func (c config) startupLine(addr net.Addr, demo bool) string {
	which, where, login := "GATEWAY_BASE_URL", "PostgreSQL", "of SHOP_MERCHANTS"
	if demo {
		which = "a stand-in in this process with invented data"
	}
	if path, ok := strings.CutPrefix(c.database, "file:"); ok {
		where = "SQLite, " + path
	}
	if c.password != "" {
		login = "demo, password " + c.password
	}
	return fmt.Sprintf("http://%s is ready (gateway: %s; orders: %s; merchant: /admin, name %s)", addr, which, where, login)
}
