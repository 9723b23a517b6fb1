// Package route says to which carbons a path is relayed, as carbon-relay 1.1.10 does: by relay-rules.conf or
// by a hash of the path, over the DESTINATIONS of the section [relay] of carbon.conf.
//
// The package owns the meaning of that section and of relay-rules.conf. It opens no files and no connections:
// write/graphite/rules reads the files, and write/graphite/relay sends.
package route
