// Package codegen tests what oapi-codegen makes of api/openapi.yaml: the generated client
// against the stand-in, and the client of this repository against the generated server.
// TestCodegen adds the generated file, which is not kept, and runs these tests.
package codegen
