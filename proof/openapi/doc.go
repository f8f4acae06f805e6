// Package openapi validates the client, the examples and the stand-in by the OpenAPI document in
// api/. It has tests only.
package openapi
