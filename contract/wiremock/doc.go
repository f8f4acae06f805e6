// Package wiremock runs the client against WireMock: against stubs of the seven
// operations, in mappings/, and against faults that nobody here has made. It has
// tests only, and ../ci-strangers.sh installs what they need.
package wiremock
