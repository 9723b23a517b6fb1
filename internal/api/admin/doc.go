// Package admin is the HTTP of the one who runs Shale: whether it is alive, whether it is ready, its metrics, and a page
// that lists what can be asked.
//
// It owns /, /healthz, /ready and /metrics. It never shows data and never changes anything.
package admin
