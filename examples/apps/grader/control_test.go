package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"

	_ "modernc.org/sqlite"
)

// The controls are shops with net/http and tables of their own, each with a mistake that the grader
// must notice.
const (
	naive    = "naive"    // asks the gateway, and then records what it was told
	forgets  = "forgets"  // records "created" in one table, and then the response in another
	denies   = "denies"   // shows an order only if it has the response, and says otherwise that there is none
	chatters = "chatters" // logs its requests
	believes = "believes" // takes an order that a file does not have for one without an invoice
)

type control struct {
	mistake string
	db      *sql.DB
}

// runControl is the main of a control.
func runControl(mistake string) error {
	db, err := sql.Open("sqlite", os.Getenv("DATABASE_URL")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	if _, err := db.Exec(`CREATE TABLE IF NOT EXISTS states (id text PRIMARY KEY, state text NOT NULL, price text NOT NULL);
		CREATE TABLE IF NOT EXISTS journal (id text NOT NULL, event text NOT NULL);
		CREATE TABLE IF NOT EXISTS invoices (id text PRIMARY KEY, invoice blob NOT NULL)`); err != nil {
		return err
	}
	c := &control{mistake, db}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /orders/{id}/pay", c.pay)
	if mistake == believes {
		routes.HandleFunc("POST /reconcile", c.reconcile)
	}
	routes.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) { c.show(w, r.PathValue("id")) })
	return http.ListenAndServe(os.Getenv("SHOP_ADDR"), routes) // #nosec G114 -- of a test
}

func (c *control) reconcile(w http.ResponseWriter, r *http.Request) {
	file, err := io.ReadAll(r.Body)
	if err == nil {
		_, err = c.db.Exec("DELETE FROM states WHERE state = 'sending' AND instr($1, id) = 0", string(file))
	}
	if err != nil {
		http.Error(w, "failed", http.StatusInternalServerError)
	}
}

// state returns what the tables have of an order; "" for nothing.
func (c *control) state(id string) (state, price string, invoice []byte) {
	_ = c.db.QueryRow("SELECT state, price FROM states WHERE id = $1", id).Scan(&state, &price)
	_ = c.db.QueryRow("SELECT invoice FROM invoices WHERE id = $1", id).Scan(&invoice)
	return state, price, invoice
}

func (c *control) show(w http.ResponseWriter, id string) {
	state, _, invoice := c.state(id)
	switch {
	case invoice != nil:
		_, _ = w.Write(invoice)
	case state == "", c.mistake == denies, c.mistake == naive:
		http.Error(w, "there is no invoice", http.StatusNotFound)
	case state == "created":
		http.Error(w, "this order has an invoice already", http.StatusConflict)
	default:
		http.Error(w, "not known yet", http.StatusAccepted)
	}
}

func (c *control) pay(w http.ResponseWriter, r *http.Request) {
	id, price := r.PathValue("id"), r.PostFormValue("price")
	if amount, ok := new(big.Rat).SetString(price); !ok || amount.Sign() <= 0 {
		http.Error(w, "not a price", http.StatusBadRequest)
		return
	}
	if _, before, invoice := c.state(id); invoice != nil {
		if before != price {
			http.Error(w, "another price", http.StatusConflict)
			return
		}
		_, _ = w.Write(invoice)
		return
	}
	if c.mistake != naive {
		if _, err := c.db.Exec("INSERT INTO states VALUES ($1, 'sending', $2)", id, price); err != nil {
			c.show(w, id)
			return
		}
	}
	c.send(w, id, price)
}

// errRefused is of a gateway that has created nothing.
var errRefused = errors.New("the gateway refuses")

func (c *control) send(w http.ResponseWriter, id, price string) {
	invoice, err := c.ask(id, price)
	switch {
	case errors.Is(err, errRefused):
		_, _ = c.db.Exec("DELETE FROM states WHERE id = $1", id)
		http.Error(w, "refused", http.StatusBadGateway)
		return
	case err != nil && c.mistake == naive:
		http.Error(w, "failed", http.StatusBadGateway)
		return
	case err != nil:
		c.show(w, id)
		return
	}
	_, _ = c.db.Exec("INSERT INTO states VALUES ($1, 'created', $2) ON CONFLICT (id) DO UPDATE SET state = 'created'", id, price)
	for range 50 { // what else there is to write down
		_, _ = c.db.Exec("INSERT INTO journal VALUES ($1, 'created')", id)
	}
	_, _ = c.db.Exec("INSERT INTO invoices VALUES ($1, $2) ON CONFLICT DO NOTHING", id, []byte(invoice))
	_, _ = w.Write(invoice)
}

// ask asks the gateway for an invoice.
func (c *control) ask(id, price string) (json.RawMessage, error) {
	key := os.Getenv("GATEWAY_API_KEY")
	body, err := json.Marshal(map[string]string{"apiKey": key, "orderId": id, "price": price, "amount": price})
	if err != nil {
		return nil, err
	}
	if c.mistake == chatters {
		fmt.Printf("sending %s\n", body)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.mistake == naive {
		client.CheckRedirect = nil
	}
	response, err := client.Post(os.Getenv("GATEWAY_BASE_URL")+"/api/invoice/create", "application/json", bytes.NewReader(body))
	if err != nil {
		if c.mistake != naive && bytes.Contains([]byte(err.Error()), []byte("connection refused")) {
			return nil, errRefused
		}
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if response.StatusCode >= 400 && response.StatusCode < 500 {
		return nil, errRefused
	}
	var envelope struct{ Result json.RawMessage }
	if err = errors.Join(err, json.Unmarshal(text, &envelope)); err == nil && response.StatusCode != http.StatusCreated {
		err = errors.New(response.Status)
	}
	return envelope.Result, err
}
