// Package rfc3339 reads times as VictoriaLogs writes them.
package rfc3339
