// Package codegen tests what oapi-codegen makes of api/openapi.yaml: the generated client
// against the stand-in, and the client of this repository against the generated server.
// What is generated is not kept: go generate writes it, in the version that tools/go.mod
// names, and the tests have the tag "codegen", as ../ci.sh runs them.
package codegen

//go:generate go -C ../../tools tool oapi-codegen -config ../proof/codegen/oapi-codegen.yaml -o ../proof/codegen/api_gen_test.go ../api/openapi.yaml
