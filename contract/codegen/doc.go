// Package codegen holds what oapi-codegen makes of api/openapi.yaml. Its tests run the
// generated client against the stand-in, and the client of this repository against the
// generated server. It has tests only, and so the generated file is one.
package codegen

//go:generate go tool oapi-codegen -config oapi-codegen.yaml -o api_gen_test.go ../../api/openapi.yaml
