package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
)

// every method meets every status with every form
// of body.
// I-37, I-128, I-156, I-159
func TestClient_EveryStatus(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range statuses {
				for _, form := range refusals {
					synctest.Test(t, func(t *testing.T) { assertStatus(t, s, status, form) })
				}
			}
		})
	}
}

func assertStatus(t *testing.T, s subject, status statusCase, form refusalCase) {
	t.Helper()
	sent := 0
	c := newClient(t, "http://localhost", through(func(*http.Request) (*http.Response, error) {
		sent++
		return reply(status.status, form.body), nil
	}))
	var seen gateway.Response
	got, err := s.call(t.Context(), c, gateway.WithResponse(&seen))
	at := fmt.Sprintf("%d with %s", status.status, form.name)
	assertInvariants(t, got, err)
	attempts := 1
	if status.retried && !s.write {
		attempts = 3
	}
	assert.Equal(t, attempts, sent, at)
	assert.Equal(t, attempts, seen.Attempts, at)
	assert.Equal(t, status.status, seen.StatusCode, at)
	assert.Equal(t, form.message, seen.Message, at)
	isBroken := strings.HasPrefix(form.body, "{") && !form.whole // nobody knows what else it has
	rejects := status.rejects && !isBroken && (!status.needsMessage || form.envelope || form.message != "" && form.whole && status.status != 403)
	refusal := assertRefusal(t, s, rejects, err)
	assert.Equal(t, s.op, refusal.Operation)
	assert.Equal(t, status.status, refusal.StatusCode, at)
	assert.Equal(t, attempts, refusal.Attempts, at)
	assert.Equal(t, form.message, refusal.Message, at)
	assert.Equal(t, form.body, string(refusal.Body), at)
	assertSentinels(t, refusal, status.sentinel)
	if s.write && !rejects {
		unknown := err.(*gateway.OutcomeUnknownError) //nolint:errorlint // a call returns it as it is
		assert.Equal(t, refusal, unknown.Response, at)
	}
	assert.Equal(t, status.retried && (!s.write || rejects), gateway.SafeToRetry(refusal), at)
	assert.Equal(t, status.retried && (!s.write || rejects), gateway.SafeToRetry(err), at)
}

// assertRefusal returns the refusal in an error: an invoice of which a status
// does not prove that it was refused is unknown, with the refusal as the cause.
func assertRefusal(t *testing.T, s subject, rejects bool, err error) *gateway.APIError {
	t.Helper()
	if s.write && rejects {
		assert.Equal(t, gateway.OutcomeRejected, gateway.OutcomeOf(err))
	}
	if s.write && !rejects {
		assert.Equal(t, gateway.OutcomeUnknown, gateway.OutcomeOf(err))
		var lost *gateway.OutcomeUnknownError
		require.ErrorAs(t, err, &lost)
		switch {
		case lost.StatusCode == 409:
			assertSentinels(t, err, gateway.ErrConflict)
		case lost.StatusCode >= 500:
			assertSentinels(t, err, gateway.ErrServer)
		default:
			assertSentinels(t, err)
		}
		var inner *gateway.APIError
		assert.False(t, errors.As(err, &inner), "the refusal is a field only")
		require.ErrorAs(t, lost.Cause, &inner)
		assert.Equal(t, inner.StatusCode, lost.StatusCode)
		assert.Equal(t, string(inner.Body), string(lost.Body))
		return inner
	}
	refusal, ok := err.(*gateway.APIError) //nolint:errorlint // the error itself, not one in it
	require.True(t, ok, "%T: %v", err, err)
	return refusal
}

// The forms of the body of a refusal, with the message that is read from it.
var refusals = []refusalCase{
	{"the documented envelope", refused("Order is not acceptable"), "Order is not acceptable", true, true}, // I-152
	{"a web page", "<html><body>Bad Gateway</body></html>", "", false, false},                              // I-158
	{"nothing", "", "", false, false},
	{"cut JSON", `{"message":"Order is not acc`, "", false, false},
	{"JSON that is cut after its message", `{"message":"Order is not acceptable","result":[`, "Order is not acceptable", false, false},
	{"JSON with a message only", `{"message":"Order is not acceptable"}`, "Order is not acceptable", false, true},
	{"JSON without a message", `{"result":[],"meta":{}}`, "", false, true},
	{"JSON of another shape", `["Order is not acceptable"]`, "", false, true},
}

type refusalCase struct {
	name, body, message string
	envelope, whole     bool // it is the documented one, and JSON
}

// I-26
func TestResponse_status(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 203, 206, 226, 299} {
		forEach(t, fmt.Sprintf("status %d", status), func(t *testing.T, s subject) {
			got, err := s.call(t.Context(), cannedClient(t, status, s.body()))
			assertInvariants(t, got, err)
			if s.write && status > 201 {
				assert.ErrorContains(t, decodeErrorOf(t, s, err), "an invoice was created if the status is 200 or 201")
				return
			}
			require.NoError(t, err)
		})
	}
	forEach(t, "status 204 has no body", func(t *testing.T, s subject) {
		got, err := s.call(t.Context(), cannedClient(t, 204, ""))
		assertInvariants(t, got, err)
		assert.ErrorContains(t, decodeErrorOf(t, s, err), "the body is empty")
	})
}

func TestResponse_contentType(t *testing.T) {
	t.Parallel()
	forEach(t, "a page that is labelled as one", func(t *testing.T, s subject) {
		w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			rw.WriteHeader(200)
			_, _ = io.WriteString(rw, "<html>captive portal</html>")
		})
		got, err := s.call(t.Context(), newClient(t, w.URL))
		assertInvariants(t, got, err)
		wrong := decodeErrorOf(t, s, err)
		assert.Equal(t, "text/html; charset=utf-8", wrong.ContentType)
		assert.Equal(t, "<html>captive portal</html>", string(wrong.Body))
		assert.ErrorContains(t, err, "captive portal")
		assert.Len(t, w.Requests(), 1, "a retry would not help")
	})
	forEach(t, "JSON is read whatever it is labelled as", func(t *testing.T, s subject) { // I-9
		w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/plain")
			rw.WriteHeader(s.status)
			_, _ = io.WriteString(rw, s.body())
		})
		_, err := s.call(t.Context(), newClient(t, w.URL))
		require.NoError(t, err)
	})
	forEach(t, "a Retry-After on a success is ignored", func(t *testing.T, s subject) {
		w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "3600")
			rw.WriteHeader(s.status)
			_, _ = io.WriteString(rw, s.body())
		})
		_, err := s.call(t.Context(), newClient(t, w.URL))
		require.NoError(t, err)
		assert.Len(t, w.Requests(), 1)
	})
}

// unending is a response without an end that counts what is taken of it.
type unending struct {
	start, more string
	at, taken   int
}

func (e *unending) Read(p []byte) (int, error) {
	for i := range p {
		if e.at < len(e.start) {
			p[i] = e.start[e.at]
		} else {
			p[i] = e.more[(e.at-len(e.start))%len(e.more)]
		}
		e.at++
	}
	e.taken += len(p)
	return len(p), nil
}

// Of a response over the limit no more is taken than the limit and a byte.
// I-162
func TestResponse_tooLarge(t *testing.T) {
	t.Parallel()
	const limit = 8 << 20
	for _, tt := range []struct{ name, start, more string }{
		{"a text without an end", `{"message":"`, "x"},
		{"spaces without an end", "", " "},
		{"records without an end", `{"result":[` + pairJSON, "," + pairJSON},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			source := &unending{start: tt.start, more: tt.more}
			transport := canned{status: s.status, body: func() io.Reader { return source }}
			got, err := s.call(t.Context(), cannedClient(t, 0, "", gateway.WithHTTPClient(&http.Client{Transport: transport})))
			assertInvariants(t, got, err)
			assert.LessOrEqual(t, source.taken, limit+1)
			assertTooLarge(t, s, err)
		})
	}
}

func assertTooLarge(t *testing.T, s subject, err error) {
	t.Helper()
	var unknown *gateway.OutcomeUnknownError
	if s.write {
		require.ErrorAs(t, err, &unknown)
		err = unknown.Cause
	}
	var wrong *gateway.DecodeError
	if errors.As(err, &wrong) {
		// A reader that knows already that the response is wrong stops there.
		assert.NotEmpty(t, wrong.Body)
		return
	}
	var failure *gateway.TransportError
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, gateway.PhaseRead, failure.Phase)
	assert.ErrorIs(t, err, gateway.ErrResponseTooLarge)
	assert.False(t, gateway.SafeToRetry(err))
}

// A response of exactly 8 MiB is read.
// I-162
func TestResponse_limit(t *testing.T) {
	t.Parallel()
	forEach(t, "the limit is exact", func(t *testing.T, s subject) {
		body := s.body() + strings.Repeat(" ", 8<<20-len(s.body()))
		_, err := s.call(t.Context(), cannedClient(t, s.status, body))
		require.NoError(t, err)
		_, err = s.call(t.Context(), cannedClient(t, s.status, body+" "))
		require.Error(t, err)
		assertTooLarge(t, s, err)
	})
}

// Header values need not be UTF-8, and are truncated all the same.
func TestResponse_headersThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, header, value string
		status              int
		body                string
	}{
		{"an identifier of continuation bytes with a refusal", "X-Request-Id", strings.Repeat("\x80", 2000), 404, refused("No.")},
		{"an identifier of the longest characters with a refusal", "X-Request-Id", "x" + strings.Repeat("\U0001F600", 500), 404, refused("No.")},
		{"an identifier that is truncated inside of a character", "X-Request-Id", strings.Repeat("p", 1023) + "\u00e9", 404, refused("No.")},
		{"a content type of continuation bytes with a page", "Content-Type", strings.Repeat("\x80", 300), 200, "<html>"},
		{"a content type of first bytes with a page", "Content-Type", strings.Repeat("\xf0", 300), 200, "<html>"},
		{"a content type of the longest characters with a page", "Content-Type", "x" + strings.Repeat("\U0001F600", 100), 200, "<html>"},
	} {
		forEach(t, tt.name, func(t *testing.T, s subject) {
			w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set(tt.header, tt.value)
				rw.WriteHeader(tt.status)
				_, _ = io.WriteString(rw, tt.body)
			})
			got, err := s.call(t.Context(), newClient(t, w.URL, once()))
			assertInvariants(t, got, err)
			require.Error(t, err)
			assertHeaderIsTruncated(t, s, tt.header, tt.value, err)
		})
	}
}

// assertHeaderIsTruncated asserts that an error keeps the beginning of a header.
func assertHeaderIsTruncated(t *testing.T, s subject, header, value string, err error) {
	t.Helper()
	kept, most := "", 256
	if refusal, ok := errors.AsType[*gateway.APIError](err); ok {
		kept, most = refusal.Header.Get(header), 1024
	} else {
		kept = decodeErrorOf(t, s, err).ContentType
	}
	assert.LessOrEqual(t, len(kept), most)
	assert.Greater(t, len(kept), most-4)
	assert.True(t, strings.HasPrefix(value, kept), "%q", kept)
	next, _ := strings.CutPrefix(value, kept)
	if strings.ToValidUTF8(value, "") == value {
		assert.Equal(t, kept, strings.ToValidUTF8(kept, ""), "a character is not truncated: %.8q", next)
	}
}

// A body is closed once, whatever the response, and with it the attempt is over:
// its context, and the timer in that, are not left behind.
func TestClient_BodiesAreClosedOnce(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{101, 200, 204, 302, 404, 503} {
				synctest.Test(t, func(t *testing.T) {
					sent, closed := 0, 0
					var attempts []context.Context
					c := newClient(t, "http://localhost", through(func(req *http.Request) (*http.Response, error) {
						sent++
						attempts = append(attempts, req.Context())
						response := reply(status, s.body())
						response.Body = closer{response.Body, func() { closed++ }}
						return response, nil
					}))
					_, _ = s.call(t.Context(), c)
					assert.Equal(t, sent, closed, "bodies closed after %d", status)
					for _, attempt := range attempts {
						assert.Error(t, attempt.Err(), "the attempt is over")
					}
				})
			}
		})
	}
}
