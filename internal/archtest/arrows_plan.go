package archtest

// planRooms returns the rows of capacity planning.
func planRooms() []room {
	return []room{
		{"plan/trace", nil, "a trace is a list of requests, whoever made them"},
		{"plan/workload", map[string]string{
			"plan/trace": "it makes traces",
		}, "a workload knows queries and data, and no cache"},
		{"plan/evict", map[string]string{
			"cache/admit": "Shale's tier on disk is simulated by the code of the product",
			"cache/ram":   "Shale's tier in memory is simulated by the code of the product",
		}, "a policy sees keys and sizes, and no trace"},
		{"plan/replay", map[string]string{
			"plan/trace": "it replays traces",
			"plan/evict": "requests go to a cache under a policy",
		}, "a replay counts, and does not judge"},
		{"plan/cluster", nil, "nodes and prices do not depend on how a need was found"},
		{"plan/roles", map[string]string{
			"config":       "flags have sizes",
			"plan/cluster": "requests to a bucket have prices",
			"plot":         "numbers are written as in charts",
			"terminal":     "the plan is a table",
		}, "machines follow from loads and from what work costs; no server is asked"},
		{"plan/study", map[string]string{
			"plan/trace":   "a study is about a trace",
			"plan/replay":  "the trace is replayed",
			"plan/evict":   "policies have names",
			"plan/cluster": "the result is a cluster and its cost",
			"plot":         "a report has a chart",
		}, "a study returns figures and prints nothing"},
		{"plan/simulate", map[string]string{
			"config":        "flags have sizes",
			"load/progress": "a long replay shows its progress",
			"plan/trace":    "a trace is read from a file",
			"plan/workload": "or made",
			"plan/study":    "the study answers",
			"plan/cluster":  "a node is chosen by name",
			"plot":          "sizes are written as in charts",
			"terminal":      "the report is a table",
		}, "a command has flags and output, and no policy"},
	}
}
