package archtest

// writeRooms returns the rows of the write path.
func writeRooms() []room {
	const protocol = "a protocol knows the write path and not the store, so that receivers come and go alone"
	return []room{
		{"write", map[string]string{
			"pressure": "requests of a tenant compute on a part of the processors",
		}, "the write path declares what it needs of the journal and the head, and app fits them together"},
		{"write/body", receiver(), "a body is bytes; what they mean is for the protocol"},
		{"write/logs", receiver(), "streams and lines are the same in every protocol of logs"},
		{"write/receive", receiver("write/body"), "the skin of the receivers knows no protocol"},
		{"write/wire", nil, "only receivers read protobuf"},
		{"write/graphite", receiver("peerhost", "write/body", "write/graphite/pickle", "write/receive", "write/wire"), protocol},
		{"write/graphite/pickle", nil, "pickle is bytes to values"},
		{"write/graphite/segment", nil, "a record is bytes"},
		{"write/graphite/events", map[string]string{
			"event":         "an event is stored in the form that readers expect",
			"write/body":    "all receivers read bodies within the budget in one way",
			"write/logs":    "an event is a line",
			"write/receive": "admission, bodies and responses are the same for all receivers",
		}, protocol},
		{"write/graphite/rules", map[string]string{
			"carbonconf": "rules are files of carbon",
			"filewatch":  readAgain,
			"pyregexp":   "patterns and replacements are those of Python",

			"write/graphite/route": "the files of the relay are read together with the others",
		}, "a rule sees a path, not the point"},
		{"write/graphite/route", map[string]string{
			"carbonconf": "rules are files of carbon",
			"pyregexp":   "patterns are those of Python",
		}, "where a path goes does not depend on who is there"},
		{"write/graphite/relay", map[string]string{
			"write/graphite/route":   "destinations and their protocol are those of carbon.conf",
			"write/graphite/segment": "what waits is kept in files of records",
		}, "a queue gets points that are its own, and never asks why"},
		{"write/graphite/agents", map[string]string{
			"write": "points are discarded for a reason",
		}, "series are made of metrics that others count"},
		{"write/graphite/aggregate", map[string]string{
			"write/graphite/rules":   "a method is that of a rule",
			"write/graphite/segment": "what buffers take is kept in files of records",
		}, "aggregation sees paths that belong together, not why"},
		{"write/graphite/pipeline", map[string]string{
			"write":                    "a point is discarded for a reason",
			"write/graphite/aggregate": "points are given to their aggregates",
			"write/graphite/relay":     "points are given to the queues of their destinations",
			"write/graphite/rules":     "rules are applied in the order of carbon",
		}, "the receiver declares what it asks; rules never know a protocol"},
		{"write/promwrite", receiver("write/body", "write/receive", "write/replicas", "write/wire"), protocol},
		{"write/creators", map[string]string{
			"dayfile": "counts are kept by day",
			"sketch":  "names are counted in bounded memory",
		}, "it sees labels of new series; who creates them does not matter"},
		{"write/groups", nil, "it sees labels of new series, and is told which series are active"},
		{"write/replicas", nil, "a replica is a name with a time; its samples are for the receiver"},
		{"write/lokipush", receiver("write/body", "write/receive", "write/logs", "write/wire"), protocol},
		{"write/otlp", receiver("write/body", "write/receive", "write/logs", "write/wire"), protocol},
	}
}

// receiver is what a protocol may import: the write path, and the named rooms that receivers share.
func receiver(shared ...string) map[string]string {
	why := map[string]string{
		"peerhost":              "a host with many connections gives some up for others",
		"write/body":            "all receivers read and decompress bodies within the budget in one way",
		"write/logs":            "streams and lines are the same in every protocol of logs",
		"write/receive":         "admission, bodies and responses are the same for all receivers",
		"write/wire":            "protobuf is read in place",
		"write/replicas":        "of the replicas of an HA pair one is stored",
		"write/graphite/pickle": "the pickle listener decodes pickles",
	}
	may := map[string]string{"write": "a receiver turns bytes into batches and pushes them"}
	for _, room := range shared {
		may[room] = why[room]
	}
	return may
}
