// Package statefile reads and writes the file that records what a server acknowledged, so that a later
// process can verify a load after the server was killed.
package statefile
