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

// maxAnswer bounds how much of an answer is read.
const maxAnswer = 64 << 20

// An answer is what came back for a request that the suite sent by itself.
type answer struct {
	status int
	body   []byte
}

// get asks for a path with these headers, spelled as they are.
func (t Target) get(ctx context.Context, path string, header http.Header) (answer, error) {
	return t.ask(ctx, http.MethodGet, path, header, "")
}

// post posts a body to the one path that takes one.
func (t Target) post(ctx context.Context, body string) (answer, error) {
	return t.ask(ctx, http.MethodPost, "/api/invoice/create", http.Header{"Content-Type": {"application/json"}}, body)
}

func (t Target) ask(ctx context.Context, method, path string, header http.Header, body string) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, t.url(path), strings.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header = header
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the key must not go along
	client := &http.Client{Transport: t.Transport, CheckRedirect: stay}
	resp, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	a.status = resp.StatusCode
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return a, err
}

// succeeded says what is wrong with an answer that has to be a success, of
// which no more is known than that it is JSON.
func (a answer) succeeded() error {
	if a.status < 200 || a.status > 299 {
		return fmt.Errorf("status %d, want a success: %.200s", a.status, a.body)
	}
	if !json.Valid(a.body) {
		return fmt.Errorf("the body is not JSON: %.200q", a.body)
	}
	return nil
}

// refused says what is wrong with an answer that has to be the documented error.
// An empty message stands for any.
func (a answer) refused(message string) error {
	var e map[string]json.RawMessage
	if a.status < 400 {
		return fmt.Errorf("status %d, want that of an error: %.200s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &e); err != nil {
		return fmt.Errorf("status %d: the body is not the envelope of an error: %w", a.status, err)
	}
	switch said, err := is[string](e["message"], "a text"); {
	case err != nil || said == "":
		return fmt.Errorf("status %d: no message describes the issue: %.200s", a.status, a.body)
	case message != "" && said != message:
		return fmt.Errorf("status %d: message %q, want %q", a.status, said, message)
	case !same(e["result"], "[]"):
		return fmt.Errorf("status %d: result is %.200s, want an empty array", a.status, e["result"])
	case !same(e["meta"], "{}"):
		return fmt.Errorf("status %d: meta is %.200s, want an empty object", a.status, e["meta"])
	}
	return nil
}

// same reports whether a text is that JSON, but for spaces.
func same(text []byte, want string) bool {
	var compact bytes.Buffer
	return json.Compact(&compact, text) == nil && compact.String() == want
}

// documented says what is wrong with the envelope of a success that the pages
// describe.
func documented(r gateway.Response) error {
	if r.Message != successMessage {
		return fmt.Errorf("message is %q, want %q", r.Message, successMessage)
	}
	if !same(r.Meta, "{}") {
		return fmt.Errorf("meta is %.200s, want an empty object", r.Meta)
	}
	return nil
}

// answered judges a call of which the body is not shown: it has to be a success,
// and if the target says so one that the client understands.
func (t Target) answered(r gateway.Response, err error) error {
	if err != nil && !t.Readable && r.StatusCode >= 200 && r.StatusCode <= 299 && notUnderstood(err) {
		return nil
	}
	return err
}

// notUnderstood reports whether an answer came that the client could not read.
func notUnderstood(err error) bool {
	if unknown, ok := errors.AsType[*gateway.OutcomeUnknownError](err); ok {
		err = unknown.Cause
	}
	_, ok := errors.AsType[*gateway.DecodeError](err)
	return ok
}
