// Package permit has where VictoriaLogs is, and what requests to it must carry: the filters of tenants, and
// credentials.
package permit
