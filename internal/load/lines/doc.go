// Package lines generates log lines: nodes with pods that write JSON, logfmt, access logs or plain text, or
// the lines of real files. It does not know the protocol that carries them.
package lines
