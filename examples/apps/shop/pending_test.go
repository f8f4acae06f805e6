package main

import (
	"bytes"
	"fmt"
	"html"
	"mime/multipart"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The list has the orders of processes that died, and those of other programs; an order
// whose invoice is recorded needs no look-up.
func TestPending(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s, server := h.open()
	v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
	recorded := v.order(server.URL, "mug")
	v.pay(server.URL, recorded, h.pair("BTC", "Bitcoin"))
	died := v.order(server.URL, "lamp")
	h.begin(s, died, nil)
	h.leaseEnds(s)
	h.begin(s, "another program, 1", &gateway.OrderRecord{Outcome: gateway.OutcomeUnknown})
	assert.Contains(t, anna.get(server.URL+"/admin").visibleText(), "2 to look up at the gateway")
	page := anna.get(server.URL + "/admin/pending").visibleText()
	assert.Contains(t, page, path.Base(died))
	assert.NotContains(t, page, path.Base(recorded))
	assert.Contains(t, page, "another program, 1 (not of this shop)")
	assert.Contains(t, page, "The process that sent it ended")
	assert.Contains(t, v.get(server.URL+recorded).visibleText(), "Pay your order")
}

// insertUnknown makes orders of the shop whose outcomes are unknown, a second apart.
func (h *harness) insertUnknown(s *shop, count int) {
	h.t.Helper()
	tx, err := s.db.BeginTx(h.t.Context(), nil)
	require.NoError(h.t, err)
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range count {
		id, at := fmt.Sprintf("order-%05d", i), first.Add(time.Duration(i)*time.Second)
		_, err := tx.ExecContext(h.t.Context(), `INSERT INTO shop_orders (id, buyer, product, made_at, coin, network, amount) VALUES ($1, '', 'mug', $2, 'BTC', 'Bitcoin', '0.00028')`, id, at)
		require.NoError(h.t, err)
		_, err = tx.ExecContext(h.t.Context(), `INSERT INTO gateway_orders (merchant, order_id, gateway, left_for, version, attempts, open_since, record) VALUES ('', $1, $2, '', 1, 1, $3, $4)`,
			id, h.gw.URL, at.UnixMicro(), []byte(`{"open":[{"outcome":"unknown"}]}`))
		require.NoError(h.t, err)
	}
	require.NoError(h.t, tx.Commit())
}

// The pages lead to every order, oldest first, and to none twice.
func TestPending_pages(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		h.insertUnknown(s, 2*pageSize+1)
		anna := newVisitor(t).logIn(server.URL)
		next, number, seen := "", regexp.MustCompile(`href="/admin/orders/(order-\d+)"`), []string{}
		for range 4 {
			page := anna.get(server.URL + "/admin/pending" + next).text
			for _, id := range number.FindAllStringSubmatch(page, -1) {
				seen = append(seen, id[1])
			}
			link := regexp.MustCompile(`href="/admin/pending(\?[^"]*)">Next page`).FindStringSubmatch(page)
			if link == nil {
				break
			}
			next = html.UnescapeString(link[1])
		}
		require.Len(t, seen, 2*pageSize+1)
		for i, id := range seen {
			assert.Equal(t, fmt.Sprintf("order-%05d", i), id)
		}
	})
}

// upload posts a form with a file.
func (v *visitor) upload(address, file string, form ...string) response {
	v.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if file != "" {
		part, err := w.CreateFormFile("file", "export.csv")
		require.NoError(v.t, err)
		_, err = part.Write([]byte(file))
		require.NoError(v.t, err)
	}
	for i := 0; i+1 < len(form); i += 2 {
		require.NoError(v.t, w.WriteField(form[i], form[i+1]))
	}
	require.NoError(v.t, w.Close())
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, address, &body)
	require.NoError(v.t, err)
	req.Header.Set("Content-Type", w.FormDataContentType())
	res, err := v.roundTrip(req)
	require.NoError(v.t, err)
	return res
}

var textareas = regexp.MustCompile(`(?s)<textarea name="([^"]*)" hidden>\n(.*?)</textarea>`)

// An export ends the orders of which it is sure, after it was shown which.
func TestReconcile(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, h *harness) {
		s, server := h.open()
		v, anna := newVisitor(t), newVisitor(t).logIn(server.URL)
		lost := h.orderWithFault(s, v, server.URL, gatewaytest.FaultCommitThenDrop())
		other := h.orderWithFault(s, v, server.URL, gatewaytest.FaultReset())
		file := "order_id,invoice\n" + path.Base(lost) + ",4711\nnever-sent,4712\n"
		shown := anna.upload(server.URL+"/admin/reconcile", file, "order_id", "order_id", "invoice_id", "invoice")
		require.Equal(t, http.StatusOK, shown.status, shown.text)
		assert.Contains(t, shown.visibleText(), "Nothing is recorded yet. The export is sure of 1 order.")
		assert.Contains(t, shown.visibleText(), "unknown: it exists 1")
		assert.Contains(t, shown.visibleText(), "never-sent only at the gateway")
		assert.Contains(t, shown.visibleText(), path.Base(other))
		assert.Equal(t, stateUnknown, h.readOrder(s, lost).State)

		form := []string{"apply", "yes"}
		for _, field := range textareas.FindAllStringSubmatch(shown.text, -1) {
			form = append(form, field[1], html.UnescapeString(field[2]))
		}
		done := anna.upload(server.URL+"/admin/reconcile", "", form...)
		assert.Contains(t, done.visibleText(), "1 order ended.")
		assert.Equal(t, stateCreated, h.readOrder(s, lost).State)
		assert.Equal(t, stateUnknown, h.readOrder(s, other).State, "the export does not show that it does not exist")
		assert.Contains(t, anna.get(server.URL+"/admin"+lost).visibleText(), "Anna found the invoice at the gateway: row 2 of a statement, invoice &#34;4711&#34;")
	})
}

func TestReconcile_refused(t *testing.T) {
	t.Parallel()
	_, server := newHarness(t).open()
	anna := newVisitor(t).logIn(server.URL)
	for name, test := range map[string]struct {
		file   string
		form   []string
		status int
		text   string
	}{
		"no such column": {"a,b\n1,2\n", nil, 422, "the export cannot be used"},
		"no file":        {"", nil, 422, "the export cannot be used"},
		"not a time":     {"order_id\nA\n", []string{"from", "yesterday"}, 422, "A time must be written as"},
		"one time":       {"order_id\nA\n", []string{"from", "2026-01-02T03:04"}, 422, "has one of From and Until"},
		"too large":      {strings.Repeat("x", maxExport), nil, 413, "Too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := anna.upload(server.URL+"/admin/reconcile", test.file, append(test.form, "order_id", "order_id")...)
			assert.Equal(t, test.status, res.status)
			assert.Contains(t, res.visibleText(), test.text)
		})
	}
	assert.Equal(t, http.StatusForbidden, newVisitor(t).upload(server.URL+"/admin/reconcile", "order_id\nA\n").status, "not logged in")
}
