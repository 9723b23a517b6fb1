// Package send sends loads over remote write, Graphite and Loki push, with the retries of a Prometheus or
// vmagent, and records what was acknowledged. It reads nothing back.
package send
