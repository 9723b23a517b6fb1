// Package promwrite receives Prometheus remote write, 1.0 and 2.0: POST /api/v1/write with protobuf in a snappy block or
// in zstd frames.
//
// It owns the walk over the decoded body, which computes keys from the label bytes where they stand and allocates nothing
// per series or sample, and the answers that senders get. A request holds a share of the byte budget before its body is
// read, and of the body no more is reserved than has come and as much again. The package never keeps a byte of a request
// after its answer and never decides what is durable: the write path does.
//
// A body is, in protobuf's terms, of version 1:
//
//	WriteRequest   { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3; }
//	TimeSeries     { repeated Label labels = 1; repeated Sample samples = 2; repeated Exemplar exemplars = 3;
//	                 repeated Histogram histograms = 4; }
//	Label          { string name = 1; string value = 2; }
//	Sample         { double value = 1; int64 timestamp = 2; }  // milliseconds
//	Exemplar       { repeated Label labels = 1; double value = 2; int64 timestamp = 3; }
//	MetricMetadata { MetricType type = 1; string metric_family_name = 2; string help = 4; string unit = 5; }
//
// and of version 2, where labels and texts are references into a table, pairs of them for labels:
//
//	Request        { repeated string symbols = 4; repeated TimeSeries timeseries = 5; }  // the first symbol is empty
//	TimeSeries     { repeated uint32 labels_refs = 1; repeated Sample samples = 2; repeated Histogram histograms = 3;
//	                 repeated Exemplar exemplars = 4; Metadata metadata = 5; int64 created_timestamp = 6; }  // 6: early senders
//	Sample         { double value = 1; int64 timestamp = 2; int64 start_timestamp = 3; }
//	Exemplar       { repeated uint32 labels_refs = 1; double value = 2; int64 timestamp = 3; }
//	Metadata       { MetricType type = 1; uint32 help_ref = 3; uint32 unit_ref = 4; }
//
// The message of a histogram is the same in both, but for the start timestamp, field 17 of version 2.
package promwrite
