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
	"github.com/cryptogw/gateway/internal/testing/leak"
)

// TestMain fails when the tests leave a goroutine behind.
func TestMain(m *testing.M) { leak.Main(m) }

// A checker is middleware in front of a gateway that validates requests and responses by the document, with
// kin-openapi.
type checker struct {
	router routers.Router

	mu        sync.Mutex
	operation string // of the last request
	wrong     error
	responses int
}

// newChecker returns a checker of a gateway that is mounted under a path.
func newChecker(t *testing.T, mounted string) *checker {
	t.Helper()
	doc := document(t)
	doc.Servers = openapi3.Servers{{URL: mounted}}
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	return &checker{router: router}
}

// wrap returns the middleware. It forwards invalid messages too; seen reports them.
func (k *checker) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		input, invalid := k.request(r)
		k.note(errors.Join(err, invalid))
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
	k.wrong = errors.Join(k.wrong, err)
}

// request validates a request. Without a route a response cannot be validated.
func (k *checker) request(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	route, params, err := k.router.FindRoute(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	k.mu.Lock()
	k.operation = route.Operation.OperationID
	k.mu.Unlock()
	hasKey := func(_ context.Context, input *openapi3filter.AuthenticationInput) error {
		if name := input.SecurityScheme.Name; r.Header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
		return nil
	}
	input := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: hasKey, IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true, SkipSettingDefaults: true,
	}}
	err = openapi3filter.ValidateRequest(r.Context(), input)
	for name := range r.URL.Query() {
		if route.Operation.Parameters.GetByInAndName(openapi3.ParameterInQuery, name) == nil {
			err = errors.Join(err, fmt.Errorf("the query has %q, which is no parameter", name))
		}
	}
	if err != nil {
		return input, fmt.Errorf("the request %s %s: %w", r.Method, r.URL, err)
	}
	return input, nil
}

// response validates a response. The validator ignores redirects, whose document has none.
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

// seen returns the operation of the last request, and how many responses were validated and the errors found since the
// last call.
func (k *checker) seen() (operation string, responses int, wrong error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	operation, responses, wrong = k.operation, k.responses, k.wrong
	k.operation, k.responses, k.wrong = "", 0, nil
	return operation, responses, wrong
}

// A checked gateway is the stand-in behind a checker.
type checked struct {
	*gatewaytest.Server
	*checker
	url string // of the checker
}

// startChecked starts a gateway behind a checker, which aborts a response where the gateway does.
func startChecked(t *testing.T) checked {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	everycall.AddEnded(gw)
	k := newChecker(t, "/gateway")
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "localhost"}) },
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
