package agents

import "github.com/shaledb/shale/internal/write"

// kind is how a series follows from its metrics.
type kind int

const (
	current kind = iota // their sum
	added               // what was added to them in the interval
	percent             // what was added, in hundredths of the seconds of the interval
)

// series is a series of carbon.
type series struct {
	daemon, name string
	kind         kind
	from         []source
}

// source is a metric of the process.
type source struct {
	family string
	reason string // only those with this reason; empty: all
}

// own begins the names of Shale's metrics. The names are in two parts, since a literal name declares a
// metric.
const own = "shale" + "_"

// table returns the series that there are figures for.
func table() []series {
	const discarded = own + "write_discarded_samples_total"
	stored := []source{{own + "graphite_received_points_total", ""}, {own + "graphite_http_points_total", ""}}
	return []series{
		{"agents", "metricsReceived", added, append(stored[:2:2], source{discarded, write.ReasonNotForwarded})},
		{"agents", "committedPoints", added, stored},
		{"agents", "activeConnections", current, []source{{own + "graphite_connections", ""}}},
		{"agents", "blacklistMatches", added, []source{{discarded, write.ReasonBlacklisted}}},
		{"agents", "whitelistRejects", added, []source{{discarded, write.ReasonNotWhitelisted}}},
		{"agents", "cpuUsage", percent, []source{{"process_cpu_seconds_total", ""}}},
		{"agents", "memUsage", current, []source{{"process_resident_memory_bytes", ""}}},
		{"aggregator", "allocatedBuffers", current, []source{{own + "graphite_aggregation_buffers", ""}}},
		{"aggregator", "aggregateDatapointsSent", added, []source{{own + "graphite_aggregated_points_total", ""}}},
	}
}
