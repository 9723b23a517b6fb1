// Package auth knows tokens by their hashes and clients by their certificates, and gives each its rights and
// tenants.
//
// A [Guard] holds the keys of a file, which it reads again when it changes. Its method Protect lets requests
// to an endpoint through that have the right that it needs, by a token or by the certificate of their client.
// They must be for the tenants of the token. A refusal says what is missing, and nothing of what other
// tokens have. [Guard.AdmitConnection] does so for a connection without HTTP.
//
// A token has 160 random bits, so one round of SHA-256 is enough to keep it in a file, and takes 0.4 µs
// with all checks (BenchmarkAdmit). A slow hash, as for passwords that people choose, would let any client
// keep the machine busy.
//
// The package knows no endpoint and no listener: app says which right each needs.
package auth
