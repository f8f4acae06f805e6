package contract_test

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
)

// document loads and validates the OpenAPI document. It is 3.1, and read as that:
// the validator judges by JSON Schema 2020-12.
func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../api/openapi.yaml")
	require.NoError(t, err)
	require.True(t, doc.IsOpenAPI31OrLater())
	require.NoError(t, doc.Validate(t.Context(), openapi3.EnableExamplesValidation()))
	return doc
}

// A checker stands in front of a gateway and judges both ways by the document.
type checker struct {
	router routers.Router

	mu        sync.Mutex
	requests  map[string]int // by operation
	wrong     []error        // requests and responses that the document forbids
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

// around is the middleware. What it finds wrong passes all the same: verdict has it.
func (k *checker) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		k.note(err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		input, err := k.request(r)
		k.note(err)
		r.Body = io.NopCloser(bytes.NewReader(body))

		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r) // a gateway that drops the connection panics here
		if input != nil {
			k.note(k.response(r.Context(), input, answer))
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

func (k *checker) note(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.wrong = append(k.wrong, err)
	}
}

// request judges a request. Without a route there is nothing to judge an answer by.
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
	err = errors.Join(openapi3filter.ValidateRequest(r.Context(), input), listed(r.URL.Query(), route.Operation.Parameters))
	if err != nil {
		return input, fmt.Errorf("the request %s %s: %w", r.Method, r.URL, err)
	}
	return input, nil
}

// hasKey looks for the key where the document says that it is.
func hasKey(_ context.Context, input *openapi3filter.AuthenticationInput) error {
	if name := input.SecurityScheme.Name; input.RequestValidationInput.Request.Header.Get(name) == "" {
		return fmt.Errorf("the header %s is missing", name)
	}
	return nil
}

// listed refuses parameters of a query that the document does not have.
func listed(query url.Values, params openapi3.Parameters) error {
	for name := range query {
		if params.GetByInAndName(openapi3.ParameterInQuery, name) == nil {
			return fmt.Errorf("the query has %q, which is no parameter", name)
		}
	}
	return nil
}

// response judges an answer. The validator passes over redirects, of which the
// document has none.
func (k *checker) response(ctx context.Context, input *openapi3filter.RequestValidationInput, answer *httptest.ResponseRecorder) error {
	k.mu.Lock()
	k.responses++
	k.mu.Unlock()
	if answer.Code >= 300 && answer.Code <= 399 {
		return fmt.Errorf("the response to %s: a redirect, status %d", input.Request.URL, answer.Code)
	}
	err := openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.Code, Header: answer.Header(),
		Body: io.NopCloser(bytes.NewReader(answer.Body.Bytes())), Options: input.Options,
	})
	if err != nil {
		return fmt.Errorf("the response to %s: %d: %w", input.Request.URL, answer.Code, err)
	}
	return nil
}

// verdict returns what was found wrong so far, and forgets it.
func (k *checker) verdict() error {
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

// startChecked starts a gateway behind a checker. What of its answers breaks off
// breaks off at the checker too.
func startChecked(t *testing.T) checked {
	t.Helper()
	gw := gatewaytest.NewMemoryServer()
	t.Cleanup(gw.Close)
	k := newChecker(t, "/gateway")
	target, err := url.Parse("http://localhost")
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:    gw.Transport(),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	front := httptest.NewServer(k.around(proxy))
	t.Cleanup(front.Close)
	return checked{gw, k, front.URL + "/gateway"}
}

// client returns a client of the gateway that goes through the checker.
func (c checked) client(t *testing.T, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	opts = append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: transport})}, opts...)
	client, err := gateway.New(c.url, c.APIKey, opts...)
	require.NoError(t, err)
	return client
}

// count returns how many requests there were for an operation.
func (k *checker) count(operation string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests[operation]
}

// judged returns how many answers there were that the document had a say in.
func (k *checker) judged() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.responses
}
