// Package roots reads the authorities by which a client knows its servers.
package roots
