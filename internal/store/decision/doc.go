// Package decision says in the bucket what has become of a request whose order stands in the journals: it is
// carried out, or given up. Each request is decided once, whoever asks first.
package decision
