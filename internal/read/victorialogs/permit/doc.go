// Package permit has what requests to VictoriaLogs must carry: the filters of tenants, and credentials.
package permit
