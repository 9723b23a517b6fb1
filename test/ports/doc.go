// Package ports finds addresses of the loopback interface for servers that a test or a benchmark starts in processes of
// their own.
package ports
