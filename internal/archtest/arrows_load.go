package archtest

const fromOutside = "a load generator judges a server from outside, so it never imports the engine"

// loadRooms returns the rows of the load generator, which judges a server from outside.
func loadRooms() []room {
	return []room{
		{"load", nil, fromOutside},
		{"load/random", nil, fromOutside},
		{"load/tally", nil, fromOutside},
		{"load/progress", nil, fromOutside},
		{"load/pace", nil, fromOutside},
		{"load/values", map[string]string{
			"load/random": "values are drawn",
		}, fromOutside},
		{"load/fleet", map[string]string{
			"load/random": "jitter, lateness and exemplars are drawn",
			"load/values": "a series has values",
			"load/pace":   "a round has a time",
		}, fromOutside},
		{"load/lines", map[string]string{
			"load/random": "lines are drawn",
			"load/pace":   "a window has a time",
		}, fromOutside},
		{"load/wire", map[string]string{
			"load/fleet":  "it encodes samples",
			"load/lines":  "it encodes lines",
			"load/values": "it encodes histograms",
			"load/pace":   "a round has a time",
		}, fromOutside},
		{"load/statefile", map[string]string{
			"load/fleet": "a header describes the series",
			"load/lines": "or the lines",
			"load/pace":  "and their times",
		}, fromOutside},
		{"load/target", map[string]string{
			"load/fleet":  "it serves a fleet",
			"load/values": "it writes histograms",
			"load/wire":   "it writes the fields of protobuf",
			"load/tally":  "it counts scrapes",
		}, fromOutside},
		{"load/send", map[string]string{
			"client":         "it reads the server's counter",
			"load/fleet":     "it sends samples",
			"load/lines":     "it sends lines",
			"load/wire":      "it sends encoded requests",
			"load/pace":      "it sends on a schedule",
			"load/random":    "waits between attempts are drawn",
			"load/statefile": "it records acknowledgements",
			"load/tally":     "it counts requests",
		}, fromOutside},
		{"load/verify", map[string]string{
			"client":         "it reads back over the APIs",
			"load/fleet":     "it computes samples a second time",
			"load/lines":     "it computes lines a second time",
			"load/values":    "it compares histograms",
			"load/random":    "it draws the series to compare",
			"load/statefile": "it expects what was acknowledged",
		}, fromOutside},
	}
}
