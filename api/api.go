// Package api has the descriptions of the service and of the control API of `gateway mock`,
// as OpenAPI 3.1 in YAML, for programs that serve them.
package api

import _ "embed"

// OpenAPI is openapi.yaml, which describes the service as far as it is known.
//
//go:embed openapi.yaml
var OpenAPI string

// Mock is mock.yaml, which describes the control API of `gateway mock`.
//
//go:embed mock.yaml
var Mock string
