// Command otel sends logs and metrics with the OpenTelemetry SDK, like any instrumented program. It writes
// what it has sent as JSON for the end-to-end test.
package main
