// Package auth knows tokens by their hashes and clients by their certificates, and gives each its rights and
// tenants.
//
// A [Guard] holds the keys of a file, which it reads again when it changes. [Guard.Protect] lets the requests
// to one endpoint through that carry a token with the right that the endpoint needs, or come over TLS from a
// client with it. They must be for the tenants of the token. A refusal says what is missing, and nothing of
// what other tokens have. [Guard.AdmitConnection] does so for a connection without HTTP.
//
// A token has 160 random bits, so one round of SHA-256 is enough to keep it in a file, and takes 0.4 µs
// with all checks (BenchmarkAdmit). A slow hash, as for passwords that people choose, would let any client
// keep the machine busy.
//
// The package knows no endpoint and no listener: app says which right each needs.
package auth
