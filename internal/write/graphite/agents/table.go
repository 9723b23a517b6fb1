package agents

import (
	"strings"

	"github.com/shaledb/shale/internal/write"
)

// kind is how a series follows from its metrics.
type kind int

const (
	current kind = iota // their sum
	added               // what was added to them in the interval
	percent             // what was added, in hundredths of the seconds of the interval
)

// series is a series of carbon, or one for each destination of the relay if the name has a %s for it.
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

// node returns the node of a destination, whose label is host:port or host:port:instance, as carbon makes it.
func node(destination string) string {
	host, rest := destination, ""
	if i := strings.LastIndexByte(destination, ']'); i > 0 { // [::1]:2004
		host, rest = destination[1:i], destination[i+1:]
	} else if i := strings.IndexByte(destination, ':'); i > 0 {
		host, rest = destination[:i], destination[i:]
	}
	if strings.Count(rest, ":") == 1 {
		rest += ":None"
	}
	return strings.ReplaceAll(host+rest, ".", "_")
}

// own begins the names of Shale's metrics. The names are in two parts, since a literal name declares a
// metric.
const own = "shale" + "_"

// table returns the series that there are figures for.
func table() []series {
	const discarded = own + "write_discarded_samples_total"
	stored := []source{{own + "graphite_received_points_total", ""}, {own + "graphite_http_points_total", ""}}
	return []series{
		{"agents", "metricsReceived", added, append(stored[:2:2], source{discarded, write.ReasonNotForwarded}, source{discarded, write.ReasonRelayed})},
		{"agents", "committedPoints", added, stored},
		{"agents", "activeConnections", current, []source{{own + "graphite_connections", ""}}},
		{"agents", "blacklistMatches", added, []source{{discarded, write.ReasonBlacklisted}}},
		{"agents", "whitelistRejects", added, []source{{discarded, write.ReasonNotWhitelisted}}},
		{"agents", "cpuUsage", percent, []source{{"process_cpu_seconds_total", ""}}},
		{"agents", "memUsage", current, []source{{"process_resident_memory_bytes", ""}}},
		{"aggregator", "allocatedBuffers", current, []source{{own + "graphite_aggregation_buffers", ""}}},
		{"relays", "destinations.%s.attemptedRelays", added, []source{{own + "graphite_relay_points_total", ""}}},
		{"relays", "destinations.%s.sent", added, []source{{own + "graphite_relay_sent_points_total", ""}}},
		{"relays", "destinations.%s.batchesSent", added, []source{{own + "graphite_relay_lots_total", ""}}},
		{"relays", "destinations.%s.fullQueueDrops", added, []source{{own + "graphite_relay_dropped_points_total", "full"}}},
		{"relays", "destinations.%s.relayMaxQueueLength", current, []source{{own + "graphite_relay_queued_points", ""}}},
		{"aggregator", "aggregateDatapointsSent", added, []source{{own + "graphite_aggregated_points_total", ""}}},
	}
}
