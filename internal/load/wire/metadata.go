package wire

import "github.com/shaledb/shale/internal/load/fleet"

// AppendMetadata appends a request of remote write 1.0 with the metadata of the metrics [first, first+n).
func AppendMetadata(dst []byte, f *fleet.Fleet, first, n int) []byte {
	var one []byte
	for metric := first; metric < first+n; metric++ {
		one = AppendVarint(one[:0], 1, uint64(f.MetricType(metric)))
		one = AppendField(one, 2, []byte(f.MetricName(metric)))
		one = AppendField(one, 4, f.AppendHelp(nil, metric))
		one = AppendField(one, 5, []byte(f.Unit()))
		dst = AppendField(dst, 3, one)
	}
	return dst
}
