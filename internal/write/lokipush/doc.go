// Package lokipush receives what agents push to Loki: POST /loki/api/v1/push, and its older form at
// /api/prom/push.
//
// It owns the walks over a body, which copy the bytes of lines straight into a batch and allocate
// nothing per line, and the responses to senders. A request reserves memory from the byte budget before
// its body is read. Package logs applies the rules for streams and lines. The package keeps no byte of
// a request after its response.
//
// A body is a protobuf message in a snappy block:
//
//	PushRequest { repeated Stream streams = 1; }
//	Stream      { string labels = 1; repeated Entry entries = 2; uint64 hash = 3; }
//	Entry       { Timestamp timestamp = 1; string line = 2; repeated LabelPair structuredMetadata = 3; }
//	Timestamp   { int64 seconds = 1; int32 nanos = 2; }
//	LabelPair   { string name = 1; string value = 2; }
//
// or JSON, in its current form or that of /api/prom/push:
//
//	{"streams": [{"stream": {"app": "a"}, "values": [["1767225600000000000", "line", {"trace_id": "1"}]]}]}
//	{"streams": [{"labels": "{app=\"a\"}", "entries": [{"ts": "2026-01-01T00:00:00Z", "line": "line"}]}]}
package lokipush
