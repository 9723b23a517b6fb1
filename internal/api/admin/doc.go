// Package admin serves the HTTP endpoints for operators: liveness, readiness, metrics, and a page that lists
// the other endpoints.
//
// It owns /, /healthz, /ready and /metrics, their namesakes of Prometheus below /-/, and /debug/pprof/. It
// never shows data and never changes anything.
package admin
