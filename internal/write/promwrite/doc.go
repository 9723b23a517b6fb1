// Package promwrite receives Prometheus remote write 1.0: POST /api/v1/write with a snappy block of protobuf.
//
// It owns the walk over the decoded body, which computes keys from the label bytes where they stand and allocates
// nothing per series, and the answers that senders get. A request holds a share of the byte budget before its body is
// read. The package never keeps a byte of a request after its answer and never decides what is durable: the write path
// does.
//
// A body is, in protobuf's terms:
//
//	WriteRequest { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3; }
//	TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2; repeated Exemplar exemplars = 3;
//	               repeated Histogram histograms = 4; }
//	Label        { string name = 1; string value = 2; }
//	Sample       { double value = 1; int64 timestamp = 2; }  // milliseconds
//
// Metadata is ignored, exemplars are counted and ignored, and a native histogram is left out with an answer that says
// so.
package promwrite
