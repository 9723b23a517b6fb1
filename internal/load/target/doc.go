// Package target serves a fleet of scrape targets over HTTP, for real Prometheus servers to scrape.
package target
