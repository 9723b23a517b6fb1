// Package following tells of new lines that do not pass through the write path of this process: those that
// other processes apply, and those of another server.
package following
