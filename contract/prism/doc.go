// Package prism validates the client and the stand-in by the OpenAPI document with
// Prism, an implementation that is independent of this repository. It has tests
// only; ../ci-strangers.sh installs what they need.
package prism
