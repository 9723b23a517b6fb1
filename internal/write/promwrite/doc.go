// Package promwrite receives Prometheus remote write, 1.0 and 2.0: POST /api/v1/write with protobuf in
// a snappy block or in zstd frames.
//
// It owns the walk over the decoded body, which computes keys from the label bytes in place and
// allocates nothing per series or sample, and the responses to senders. A request reserves memory
// before its body is read, never much more than it has sent so far. The package keeps no byte of a
// request after its response. It does not decide what is durable: the write path does.
//
// In protobuf's terms, a body of version 1 is:
//
//	WriteRequest   { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3; }
//	TimeSeries     { repeated Label labels = 1; repeated Sample samples = 2; repeated Exemplar exemplars = 3;
//	                 repeated Histogram histograms = 4; }
//	Label          { string name = 1; string value = 2; }
//	Sample         { double value = 1; int64 timestamp = 2; }  // milliseconds
//	Exemplar       { repeated Label labels = 1; double value = 2; int64 timestamp = 3; }
//	MetricMetadata { MetricType type = 1; string metric_family_name = 2; string help = 4; string unit = 5; }
//
// In version 2, labels and texts are references into a table of symbols, and a label is a pair of
// references:
//
//	Request        { repeated string symbols = 4;  // the first symbol is empty
//	                 repeated TimeSeries timeseries = 5; }
//	TimeSeries     { repeated uint32 labels_refs = 1; repeated Sample samples = 2;
//	                 repeated Histogram histograms = 3; repeated Exemplar exemplars = 4;
//	                 Metadata metadata = 5;
//	                 int64 created_timestamp = 6; }  // from early senders only
//	Sample         { double value = 1; int64 timestamp = 2; int64 start_timestamp = 3; }
//	Exemplar       { repeated uint32 labels_refs = 1; double value = 2; int64 timestamp = 3; }
//	Metadata       { MetricType type = 1; uint32 help_ref = 3; uint32 unit_ref = 4; }
//
// The Histogram message is the same in both versions, apart from the start timestamp, field 17 of
// version 2.
package promwrite
