package mock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

const (
	// maxControlBody is the largest body of a request to the control API but for the
	// state, in bytes.
	maxControlBody = 64 << 10

	// MaxFile is the largest state, or scenario, in bytes.
	MaxFile = 16 << 20

	maxFaults = 1000 // that are queued by requests
)

// A controlError is a refusal of the control API.
type controlError struct {
	status int
	text   string
}

func (e *controlError) Error() string { return e.text }

func bad(err error) error { return &controlError{http.StatusBadRequest, err.Error()} }

// A handler carries a request of the control API out. A result of nil is 204.
type handler func(*http.Request) (any, error)

// handle registers the control API. A page of another site
// cannot change anything from a browser.
func (m *Mock) handle() {
	origin := http.NewCrossOriginProtection()
	for route, handle := range map[string]handler{
		"GET /_mock/{$}":                      func(*http.Request) (any, error) { return map[string][]string{"routes": m.routes}, nil },
		"GET /_mock/health":                   m.getHealth,
		"GET /_mock/settings":                 func(*http.Request) (any, error) { return m.currentSettings(), nil },
		"PATCH /_mock/settings":               m.patchSettings,
		"GET /_mock/state":                    func(*http.Request) (any, error) { return m.Server().State(), nil },
		"PATCH /_mock/state":                  m.patchState,
		"GET /_mock/requests":                 func(*http.Request) (any, error) { return requests(m.Server().Requests()), nil },
		"GET /_mock/invoices":                 m.getInvoices,
		"GET /_mock/faults":                   func(*http.Request) (any, error) { return injections(m.Server()), nil },
		"POST /_mock/faults":                  m.postFault,
		"DELETE /_mock/faults":                m.deleteFaults,
		"GET /_mock/withdrawals":              func(*http.Request) (any, error) { return m.Server().Withdrawals(), nil },
		"POST /_mock/withdrawals":             m.postWithdrawal,
		"POST /_mock/withdrawals/{id}/status": m.postStatus,
		"GET /_mock/clock":                    func(*http.Request) (any, error) { return m.clock(), nil },
		"POST /_mock/clock":                   m.postClock,
		"POST /_mock/reset":                   m.postReset,
	} {
		m.routes = append(m.routes, strings.TrimSuffix(route, "{$}"))
		m.mux.Handle(route, origin.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { respond(w, r, handle) })))
	}
	slices.Sort(m.routes)
	m.mux.HandleFunc("/_mock/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &controlError{http.StatusNotFound, fmt.Sprintf("there is no %.16s %.128s, but %s", r.Method, r.URL.Path, strings.Join(m.routes, ", "))})
	})
}

// respond carries a request of the control API out.
func respond(w http.ResponseWriter, r *http.Request, handle handler) {
	result, err := handle(r)
	switch {
	case err != nil:
		writeError(w, err)
	case result == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusOK, result)
	}
}

func writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if known, ok := errors.AsType[*controlError](err); ok {
		status = known.status
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client has gone if it fails
}

// read decodes the body of a request, which is one JSON object of at most limit bytes. curl
// sends it under the type of a form unless it is told otherwise; a form of a page cannot
// send JSON under that type.
func read[T any](r *http.Request, limit int64) (value T, err error) {
	switch mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); mediaType {
	case "application/json", "application/x-www-form-urlencoded":
	default:
		return value, &controlError{
			http.StatusUnsupportedMediaType,
			"send a JSON object with the header Content-Type: application/json, such as curl -H 'Content-Type: application/json' -d '{...}'",
		}
	}
	from := json.NewDecoder(http.MaxBytesReader(nil, r.Body, limit))
	from.DisallowUnknownFields()
	if err := from.Decode(&value); err != nil {
		return value, bad(fmt.Errorf("the body cannot be read: %w; it is an object with the members %s", err, membersOf(value)))
	}
	if _, err := from.Token(); err != io.EOF {
		return value, bad(errors.New("there is more after the end of the body"))
	}
	return value, nil
}

// membersOf returns the names of the members of a struct in JSON.
func membersOf(value any) string {
	var names []string
	of := reflect.TypeOf(value)
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// health is that of a mock, which is ready as soon as it responds.
type health struct {
	Status          string `json:"status"`          // "ok"
	DroppedRequests int    `json:"droppedRequests"` // how many are no longer kept
	DroppedInvoices int    `json:"droppedInvoices"`
}

func (m *Mock) getHealth(*http.Request) (any, error) {
	requests, invoices := m.Server().Dropped()
	return health{"ok", requests, invoices}, nil
}

func (m *Mock) currentSettings() Settings {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings
}

func (m *Mock) patchSettings(r *http.Request) (any, error) {
	changes, err := read[Settings](r, maxControlBody)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := changes.apply(m.server); err != nil {
		return nil, bad(err)
	}
	m.settings = m.settings.with(changes)
	return m.settings, nil
}

func (m *Mock) patchState(r *http.Request) (any, error) {
	state, err := read[gatewaytest.Seed](r, MaxFile)
	if err != nil {
		return nil, err
	}
	m.Server().SetState(state)
	return nil, nil
}

// A journalEntry is a request of the journal as JSON.
type journalEntry struct {
	Operation gatewaytest.Operation `json:"operation"`
	Method    string                `json:"method"`
	Target    string                `json:"target"`
	Header    http.Header           `json:"header"`
	Body      string                `json:"body"`
	KeyIn     string                `json:"keyIn"`
	KeyOK     bool                  `json:"keyOk"`
	Status    int                   `json:"status"`
	Fault     string                `json:"fault"`
	At        time.Time             `json:"at"`
}

func requests(journal []gatewaytest.Request) []journalEntry {
	entries := []journalEntry{}
	for _, r := range journal {
		entries = append(entries, journalEntry{
			r.Operation, r.Method, r.Target, r.Header, string(r.Body), r.KeyIn, r.KeyOK, r.Status, r.Fault, r.At,
		})
	}
	return entries
}

func (m *Mock) getInvoices(r *http.Request) (any, error) {
	invoices := m.Server().Invoices()
	if query := r.URL.Query(); query.Has("orderId") {
		invoices = m.Server().InvoicesFor(query.Get("orderId"))
	}
	return append([]gatewaytest.Invoice{}, invoices...), nil
}

func (m *Mock) postFault(r *http.Request) (any, error) {
	i, err := read[Injection](r, maxControlBody)
	if err != nil {
		return nil, err
	}
	if len(m.Server().Faults()) >= maxFaults {
		return nil, &controlError{http.StatusConflict, fmt.Sprintf("%d faults are queued: DELETE /_mock/faults first", maxFaults)}
	}
	if err := i.inject(m.Server()); err != nil {
		return nil, bad(err)
	}
	return nil, nil
}

func (m *Mock) deleteFaults(*http.Request) (any, error) {
	m.Server().ClearFaults()
	return nil, nil
}

func (m *Mock) postWithdrawal(r *http.Request) (any, error) {
	w, err := read[gatewaytest.Withdrawal](r, maxControlBody)
	if err != nil {
		return nil, err
	}
	if w.Amount == "" || w.Fee == "" {
		return nil, bad(errors.New("amount and fee are required; the status of a withdrawal is changed with POST /_mock/withdrawals/{id}/status"))
	}
	return map[string]string{"withdrawRequestId": m.Server().AddWithdrawal(w)}, nil
}

// A statusChange sets the status of a withdrawal: at once, or later.
type statusChange struct {
	Status        string `json:"status"`
	AfterRequests *int   `json:"afterRequests"` // the number of inquiries with the old status
	After         string `json:"after"`         // a duration by the clock of the mock
}

func (m *Mock) postStatus(r *http.Request) (any, error) {
	change, err := read[statusChange](r, maxControlBody)
	if err != nil {
		return nil, err
	}
	server, id := m.Server(), r.PathValue("id")
	switch {
	case change.Status == "":
		return nil, bad(errors.New("status is missing"))
	case change.AfterRequests != nil && change.After != "":
		return nil, bad(errors.New("afterRequests and after exclude each other"))
	case change.AfterRequests != nil && *change.AfterRequests < 0:
		return nil, bad(errors.New("afterRequests is negative"))
	case change.AfterRequests != nil:
		err = server.SetStatusAfterRequests(id, *change.AfterRequests, change.Status)
	case change.After != "":
		after, wrong := duration(change.After)
		if wrong != nil {
			return nil, bad(wrong)
		}
		err = server.SetStatusAfter(id, after, change.Status)
	default:
		err = server.SetWithdrawalStatus(id, change.Status)
	}
	if err != nil {
		return nil, &controlError{http.StatusNotFound, err.Error()}
	}
	return nil, nil
}

// duration parses a duration that is not negative, such as 36h.
func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%.64q is not a duration such as 36h", text)
	}
	return d, nil
}

func (m *Mock) clock() map[string]time.Time {
	return map[string]time.Time{"now": m.Server().Now()}
}

func (m *Mock) postClock(r *http.Request) (any, error) {
	ahead, err := read[struct {
		Advance string `json:"advance"`
	}](r, maxControlBody)
	if err != nil {
		return nil, err
	}
	d, err := duration(ahead.Advance)
	if err != nil {
		return nil, bad(err)
	}
	m.Server().Advance(d)
	return m.clock(), nil
}

func (m *Mock) postReset(*http.Request) (any, error) {
	m.reset()
	return nil, nil
}
