// Package issuertest is an issuer of JWTs for tests. It serves a discovery document and its keys over HTTP.
package issuertest
