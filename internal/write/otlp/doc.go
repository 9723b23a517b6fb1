// Package otlp receives OpenTelemetry data over HTTP: logs at /otlp/v1/logs, metrics at
// /otlp/v1/metrics and at /api/v1/otlp/v1/metrics, each as protobuf or JSON.
//
// Logs are mapped as Loki maps them by default: some resource attributes become labels of the stream,
// everything else becomes structured metadata. A walk over the wire bytes does that without building
// objects. Metrics are mapped as Prometheus maps them, by its own code, over a tree of objects whose
// memory is reserved before it is built.
//
// The package owns the mapping and the responses, whose form the protocol defines. It keeps no byte of
// a request after its response.
//
// The messages for logs, from https://github.com/open-telemetry/opentelemetry-proto:
//
//	ExportLogsServiceRequest { repeated ResourceLogs resource_logs = 1; }
//	ResourceLogs             { Resource resource = 1; repeated ScopeLogs scope_logs = 2; }
//	Resource                 { repeated KeyValue attributes = 1; }
//	ScopeLogs                { InstrumentationScope scope = 1; repeated LogRecord log_records = 2; }
//	InstrumentationScope     { string name = 1; string version = 2; repeated KeyValue attributes = 3;
//	                           uint32 dropped_attributes_count = 4; }
//	LogRecord                { fixed64 time_unix_nano = 1; int32 severity_number = 2;
//	                           string severity_text = 3; AnyValue body = 5;
//	                           repeated KeyValue attributes = 6; uint32 dropped_attributes_count = 7;
//	                           fixed32 flags = 8; bytes trace_id = 9; bytes span_id = 10;
//	                           fixed64 observed_time_unix_nano = 11; string event_name = 12; }
//	KeyValue                 { string key = 1; AnyValue value = 2; }
//	AnyValue                 { one of: string = 1; bool = 2; int64 = 3; double = 4; ArrayValue = 5;
//	                           KeyValueList = 6; bytes = 7; }
package otlp
