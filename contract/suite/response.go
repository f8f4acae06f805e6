package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cryptogw/gateway"
)

const (
	successMessage    = "Operation was successful."
	missingKeyMessage = "x-api-key header is required"
)

// maxBody bounds how much of a response is read.
const maxBody = 64 << 20

// A response is that to a request which the suite sends without the client.
type response struct {
	status int
	body   []byte
}

// get requests a path with these headers, spelled as they are.
func (t Target) get(ctx context.Context, path string, header http.Header) (response, error) {
	return t.send(ctx, http.MethodGet, path, header, "")
}

// post sends a body to the one path that takes one.
func (t Target) post(ctx context.Context, body string) (response, error) {
	return t.send(ctx, http.MethodPost, "/api/invoice/create", http.Header{"Content-Type": {"application/json"}}, body)
}

func (t Target) send(ctx context.Context, method, path string, header http.Header, body string) (r response, err error) {
	req, err := http.NewRequestWithContext(ctx, method, t.url(path), strings.NewReader(body))
	if err != nil {
		return r, err
	}
	req.Header = header
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a redirect would forward the key
	client := &http.Client{Transport: t.Transport, CheckRedirect: noRedirect}
	resp, err := client.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }()
	r.status = resp.StatusCode
	r.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return r, err
}

// success returns what is wrong with a response that must be a success, of which the
// interface states no more than that it is JSON.
func (r response) success() error {
	if r.status < 200 || r.status > 299 {
		return fmt.Errorf("status %d, want a success: %.200s", r.status, r.body)
	}
	if !json.Valid(r.body) {
		return fmt.Errorf("the body is not JSON: %.200q", r.body)
	}
	return nil
}

// refusal returns what is wrong with a response that must be the documented error.
// An empty message stands for any.
func (r response) refusal(message string) error {
	var e map[string]json.RawMessage
	if r.status < 400 {
		return fmt.Errorf("status %d, want the status of an error: %.200s", r.status, r.body)
	}
	if err := json.Unmarshal(r.body, &e); err != nil {
		return fmt.Errorf("status %d: the body is not the envelope of an error: %w", r.status, err)
	}
	var got string
	switch err := json.Unmarshal(e["message"], &got); {
	case err != nil || got == "":
		return fmt.Errorf("status %d: the error has no message: %.200s", r.status, r.body)
	case message != "" && got != message:
		return fmt.Errorf("status %d: message %q, want %q", r.status, got, message)
	case !same(e["result"], "[]"):
		return fmt.Errorf("status %d: result is %.200s, want an empty array", r.status, e["result"])
	case !same(e["meta"], "{}"):
		return fmt.Errorf("status %d: meta is %.200s, want an empty object", r.status, e["meta"])
	}
	return nil
}

// same reports whether a text is that JSON, apart from spaces.
func same(text []byte, want string) bool {
	var compact bytes.Buffer
	return json.Compact(&compact, text) == nil && compact.String() == want
}

// documented returns what is wrong with the envelope of a documented success.
func documented(r gateway.Response) error {
	if r.Message != successMessage {
		return fmt.Errorf("message is %q, want %q", r.Message, successMessage)
	}
	if !same(r.Meta, "{}") {
		return fmt.Errorf("meta is %.200s, want an empty object", r.Meta)
	}
	return nil
}

// accept checks a call whose body is not documented: it must be a success, and one that
// the client can read if the target is Readable.
func (t Target) accept(r gateway.Response, err error) error {
	if err != nil && !t.Readable && r.StatusCode >= 200 && r.StatusCode <= 299 && isUnreadable(err) {
		return nil
	}
	return err
}

// isUnreadable reports whether a response came that the client could not read.
func isUnreadable(err error) bool {
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		err = unknown.Cause
	}
	_, ok := errors.AsType[*gateway.DecodeError](err)
	return ok
}
