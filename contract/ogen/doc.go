// Package ogen has tests of the client that ogen makes of api/openapi.yaml. What is
// generated is not kept: ci.sh generates it and runs the tests.
package ogen
