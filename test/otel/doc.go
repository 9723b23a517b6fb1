// Command otel sends logs and metrics with the OpenTelemetry SDK, as any program does that is instrumented with it, and writes
// what it has sent as JSON, for the end-to-end test to compare.
package main
