package openapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
	"github.com/cryptogw/gateway/internal/testing/documented/everycall"
)

// document loads and validates the OpenAPI document. It must be read as 3.1, so that the
// validator applies JSON Schema 2020-12.
func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../../api/openapi.yaml")
	require.NoError(t, err)
	require.True(t, doc.IsOpenAPI31OrLater())
	require.NoError(t, doc.Validate(t.Context(), openapi3.EnableExamplesValidation()))
	return doc
}

// A checker is middleware in front of a gateway that validates requests and
// responses by the document, with kin-openapi.
type checker struct {
	router routers.Router

	mu        sync.Mutex
	requests  map[string]int // by operation
	wrong     []error        // requests and responses that the document does not allow
	responses int
}

// newChecker returns a checker of a gateway that is mounted under a path.
func newChecker(t *testing.T, mounted string) *checker {
	t.Helper()
	doc := document(t)
	doc.Servers = openapi3.Servers{{URL: mounted}}
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	return &checker{router: router, requests: map[string]int{}}
}

// wrap returns the middleware. It forwards invalid messages too; violations reports them.
func (k *checker) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		k.note(err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		input, err := k.request(r)
		k.note(err)
		r.Body = io.NopCloser(bytes.NewReader(body))

		resp := httptest.NewRecorder()
		next.ServeHTTP(resp, r) // a gateway that drops the connection panics here
		if input != nil {
			k.note(k.response(r.Context(), input, resp))
		}
		for name, values := range resp.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.Code)
		_, _ = w.Write(resp.Body.Bytes())
	})
}

func (k *checker) note(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.wrong = append(k.wrong, err)
	}
}

// request validates a request. Without a route a response cannot be validated.
func (k *checker) request(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	route, params, err := k.router.FindRoute(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	k.mu.Lock()
	k.requests[route.Operation.OperationID]++
	k.mu.Unlock()
	input := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: hasKey, IncludeResponseStatus: true,
			RejectWhenRequestBodyNotSpecified: true, SkipSettingDefaults: true,
		},
	}
	err = openapi3filter.ValidateRequest(r.Context(), input)
	err = errors.Join(err, listed(r.URL.Query(), route.Operation.Parameters))
	if err != nil {
		return input, fmt.Errorf("the request %s %s: %w", r.Method, r.URL, err)
	}
	return input, nil
}

// hasKey looks for the key where the document places it.
func hasKey(_ context.Context, input *openapi3filter.AuthenticationInput) error {
	if name := input.SecurityScheme.Name; input.RequestValidationInput.Request.Header.Get(name) == "" {
		return fmt.Errorf("the header %s is missing", name)
	}
	return nil
}

// listed rejects query parameters that the document does not have.
func listed(query url.Values, params openapi3.Parameters) error {
	for name := range query {
		if params.GetByInAndName(openapi3.ParameterInQuery, name) == nil {
			return fmt.Errorf("the query has %q, which is no parameter", name)
		}
	}
	return nil
}

// response validates a response. The validator ignores redirects, whose
// document has none.
func (k *checker) response(ctx context.Context, input *openapi3filter.RequestValidationInput, resp *httptest.ResponseRecorder) error {
	k.mu.Lock()
	k.responses++
	k.mu.Unlock()
	if resp.Code >= 300 && resp.Code <= 399 {
		return fmt.Errorf("the response to %s: a redirect, status %d", input.Request.URL, resp.Code)
	}
	err := openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: resp.Code, Header: resp.Header(),
		Body: io.NopCloser(bytes.NewReader(resp.Body.Bytes())), Options: input.Options,
	})
	if err != nil {
		return fmt.Errorf("the response to %s: %d: %w", input.Request.URL, resp.Code, err)
	}
	return nil
}

// violations returns the errors found since the last call.
func (k *checker) violations() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := errors.Join(k.wrong...)
	k.wrong = nil
	return err
}

// A checked gateway is one of gatewaytest behind a checker.
type checked struct {
	*gatewaytest.Server
	*checker
	url string // of the checker
}

// startChecked starts a gateway behind a checker, which aborts a response where the
// gateway does.
func startChecked(t *testing.T) checked {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	everycall.AddEnded(gw)
	k := newChecker(t, "/gateway")
	target, err := url.Parse("http://localhost")
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:    gw.Transport(),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	front := httptest.NewServer(k.wrap(proxy))
	t.Cleanup(front.Close)
	return checked{gw, k, front.URL + "/gateway"}
}

// client returns a client of the gateway whose requests pass the checker.
func (gw checked) client(t *testing.T, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	client, err := gateway.New(gw.url, gw.APIKey, opts...)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// count returns the number of requests for an operation.
func (k *checker) count(operation string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests[operation]
}

// validated returns the number of responses that were validated.
func (k *checker) validated() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.responses
}
