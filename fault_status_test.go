package gateway_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cryptogw/gateway"
)

func TestFaults_StatusCodes(t *testing.T) {
	t.Parallel()
	var faults []fault
	one := func(row int, read, write verdict, statuses ...int) {
		for _, status := range statuses {
			read.status, write.status = status, status
			faults = append(faults, fault{
				name: fmt.Sprintf("row %d: %d", row, status),
				set:  answers(status, refused("No, because of this.")),
				read: read, write: write,
			})
		}
	}
	final := verdict{kind: api, attempts: 1, sends: 1, text: "No, because of this."}
	passing := verdict{kind: api, attempts: 3, sends: 3, text: "No, because of this."}
	refusal := verdict{kind: rejected, attempts: 1, sends: 1, text: "No, because of this."}
	unclear := verdict{kind: unknown, attempts: 1, sends: 1, text: "No, because of this."}
	one(35, final, refusal, 400, 401, 403, 404, 405, 409, 413, 415, 422, 451)
	one(36, passing, unclear, 408)
	one(37, passing, refusal, 425)
	one(41, passing, unclear, 500, 502, 503, 504)
	one(43, final, unclear, 501, 505, 511)
	one(44, passing, unclear, 520, 521, 522, 523, 524, 529)
	one(45, final, unclear, 460, 499, 418, 600, 999)
	faults = append(faults, fault{
		name:  "row 42: 503, 503, 200",
		set:   answersInTurn(503, 503, 200),
		read:  verdict{kind: works, sends: 3},
		write: verdict{kind: unknown, status: 503, attempts: 1, sends: 1},
	})
	play(t, faults)
}

// answers answers every request alike, and commits nothing.
func answers(status int, body string, headers ...string) func(*stage) {
	return says(plainAnswer(status, body, headers...))
}

// says answers every request with the same bytes.
func says(answer string) func(*stage) {
	return func(s *stage) {
		s.piped(func(_ int, conn net.Conn) {
			for r := bufio.NewReader(conn); s.receive(r); {
				_, _ = io.WriteString(conn, answer)
			}
		})
	}
}

// answersInTurn answers one request after the other; 200 is a good answer.
func answersInTurn(statuses ...int) func(*stage) {
	return func(s *stage) {
		turn := 0
		s.piped(func(_ int, conn net.Conn) {
			for r := bufio.NewReader(conn); s.receive(r); turn++ {
				if statuses[turn] == 200 {
					s.respond(conn)
					continue
				}
				_, _ = io.WriteString(conn, plainAnswer(statuses[turn], refused("Not now.")))
			}
		})
	}
}

func TestFaults_Redirects(t *testing.T) {
	t.Parallel()
	var faults []fault
	redirect := func(row int, name string, status int, headers ...string) {
		faults = append(faults, fault{
			name: fmt.Sprintf("row %d: %d %s", row, status, name),
			set:  answers(status, "", headers...),
			read: verdict{
				kind: transport, status: status, attempts: 1, sends: 1, dials: 1, is: []error{gateway.ErrRedirect},
			},
			write: verdict{
				kind: unknown, status: status, attempts: 1, sends: 1, dials: 1, is: []error{gateway.ErrRedirect},
			},
		})
	}
	for _, status := range []int{301, 302, 303} {
		redirect(46, "to another host", status, "Location: http://evil.test/steal")
	}
	for _, status := range []int{307, 308} {
		redirect(47, "to another host", status, "Location: http://evil.test/steal")
	}
	for _, status := range []int{300, 301, 302, 303, 304, 305, 307, 308, 399} {
		redirect(49, "without a Location", status)
	}
	for name, location := range map[string]string{
		"with a Location that is not a URL": "http://[::1", "with a Location of bad escapes": "%zz",
		"with a Location of another scheme": "file:///etc/passwd", "to a loop": "http://localhost/",
	} {
		redirect(49, name, 307, "Location: "+location)
	}
	play(t, faults)
	play(t, []fault{{
		name: "row 48: 307 from https to http on the same host",
		set: func(s *stage) {
			config := s.trust()
			s.piped(func(_ int, conn net.Conn) {
				secure := tls.Server(conn, config)
				if s.receive(bufio.NewReader(secure)) {
					_, _ = io.WriteString(secure, plainAnswer(307, "", "Location: http://gateway.test/"))
				}
			})
			s.Cleanup(func() { assert.Equal(s, []string{"gateway.test:443"}, s.dialed) })
		},
		read:  verdict{kind: transport, status: 307, sends: 1, is: []error{gateway.ErrRedirect}},
		write: verdict{kind: unknown, status: 307, sends: 1, is: []error{gateway.ErrRedirect}},
	}})
}

// No method follows a redirect, whichever transport it has.
func TestClient_RedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(func() {
		evil.Close()
		assert.Zero(t, hits.Load(), "the other host was contacted")
	})
	following := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	for _, s := range subjects() {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(s.name, "/", status), func(t *testing.T) {
				t.Parallel()
				for _, opts := range [][]gateway.Option{nil, {gateway.WithHTTPClient(following)}} {
					w := serve(t, func(w http.ResponseWriter, r *http.Request) {
						http.Redirect(w, r, evil.URL, status)
					})
					got, err := s.call(t.Context(), newClient(t, w.URL, opts...))
					assertInvariants(t, got, err)
					assert.Len(t, w.Requests(), 1)
					assert.Equal(t, !s.write, errors.Is(err, gateway.ErrRedirect))
					assert.Equal(t, s.write, errors.Is(err, gateway.ErrOutcomeUnknown))
				}
			})
		}
	}
}

func TestFaults_Informational(t *testing.T) {
	t.Parallel()
	const early = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
	play(t, []fault{
		{
			name:  "row 50: 101 to a request that asked for no upgrade",
			set:   says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"),
			read:  verdict{kind: transport, status: 101, attempts: 1, sends: 1, dials: 1},
			write: verdict{kind: unknown, status: 101, attempts: 1, sends: 1, dials: 1},
		},
		{
			name: "row 50: 103 before a good answer",
			set: func(s *stage) {
				s.piped(s.each(func(_ int, conn net.Conn) {
					_, _ = io.WriteString(conn, early)
					s.respond(conn)
				}))
			},
			read:  verdict{kind: works, sends: 1},
			write: verdict{kind: works, sends: 1, commits: 1},
		},
		{
			name: "row 50: 103 without end",
			set: func(s *stage) {
				s.piped(s.each(func(_ int, conn net.Conn) {
					s.commit()
					for err := error(nil); err == nil; {
						_, err = io.WriteString(conn, strings.Repeat(early, 100))
					}
				}))
			},
			read:  verdict{kind: transport, phase: gateway.PhaseWait, sends: anyNumber},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, sends: 1, commits: 1},
		},
		{
			name:  "row 50: what is answered is not HTTP",
			set:   says("SSH-2.0-OpenSSH_9.6\r\n\r\n"),
			read:  verdict{kind: transport, phase: gateway.PhaseWait, attempts: 3, sends: 3},
			write: verdict{kind: unknown, phase: gateway.PhaseWait, sends: 1},
		},
	})
}
