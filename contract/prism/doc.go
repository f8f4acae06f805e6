// Package prism lets Prism judge the client and the stand-in by the OpenAPI
// document, with rules that nobody here has written. It has tests only, and
// ../ci-strangers.sh installs what they need.
package prism
