// Package certs makes the TLS configuration of listeners from files, and reads them again when they change.
//
// A [Source] holds a certificate, its key, and the certificates of the authorities that sign those of
// clients. While changed files do not fit together, as when a certificate is new and its key is not yet,
// the ones from before count. So no handshake fails in the middle of a renewal.
//
// web.ConfigToTLSConfig of prometheus/exporter-toolkit was tried. It reads the files in each handshake, and
// fails those that meet a half-written pair. It also has one list of allowed names for all clients, where
// Shale gives each its tenants and rights. What is left is a few lines around crypto/tls.
//
// The package knows no tenant and no right: auth maps certificates to them.
package certs
