// Package progress shows how far a load or a verification has come: a bar on a terminal, a line now and then
// elsewhere.
package progress
