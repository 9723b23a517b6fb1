package archtest

// memcacheRooms returns the rows of the client of memcached, which is useful without the rest of Shale, and
// of the tier of the cache on it.
func memcacheRooms() []room {
	return []room{
		{"memcache/meta", nil, "the protocol is bytes; it knows neither connections nor servers"},
		{"memcache/hash", nil, "where a key belongs does not depend on which servers are up"},
		{"memcache/pipe", map[string]string{
			"memcache/meta": "requests and responses are of the protocol",
		}, "a connection carries requests; it does not choose servers, and never tries again"},
		{"memcache", map[string]string{
			"memcache/meta": "calls are requests of the protocol",
			"memcache/pipe": "a server has connections",
			"memcache/hash": "keys are spread over servers",
			"sketch":        "how long a server takes is learnt in little memory",
		}, "a client of servers does not know what the values are for, so that it serves people who run nothing else of Shale"},
		{"memcache/slab", nil, "how memcached lays out memory is arithmetic, which needs no server"},
		{"memcache/stats", nil, "a server is asked what it knows; what that means is for those who ask"},
		{"memcache/whatif", map[string]string{
			"memcache/slab": "what an item takes follows from its class",
		}, "a model is fed with lines; it talks to no server"},
		{"memcache/advise", map[string]string{
			"load/progress":   "a long watch shows its progress",
			"memcache/slab":   "layouts of memory are weighed by it",
			"memcache/stats":  "servers are asked",
			"memcache/whatif": "other sizes of the memory are predicted by it",
			"terminal":        "the report is a table",
		}, "advice knows no server of Shale, so that it serves people who run nothing else of it"},
		{"memcache/router", map[string]string{
			"memcache/hash":  "keys are placed as twemproxy places them",
			"memcache/slab":  "an item that a server would refuse is known by its size",
			"memcache/stats": "servers are asked for their limits",
		}, "a router passes bytes on; it keeps no value, and knows nothing of what they are for"},
		{"memcache/exporter", map[string]string{
			"memcache/advise": "waste is a metric",
			"memcache/stats":  "servers are asked",
		}, "metrics are what servers say; what they mean is for those who read them"},
		{"memcache/top", map[string]string{
			"memcache/stats": "servers are asked",
			"terminal":       "the view is a table",
		}, "a view of servers keeps nothing"},
		{"memcache/capture", map[string]string{
			"memcache/stats": "a server is watched",
			"terminal":       "a record shows keys that anybody may have chosen",
		}, "a record has the lines of the server as they are"},
		{"memcache/items", map[string]string{
			"cache/admit": "an item that left and comes again is known by its hash",
		}, "items are bytes with times; what clients say is for the server"},
		{"memcache/server", map[string]string{
			"cache":          "the disk names items by keys",
			"cache/ssd":      "what is worth it is kept on a disk",
			"memcache/items": "items are kept in memory",
			"memcache/meta":  "keys and flags are of the protocol",
		}, "a server of items knows nothing of the engine, so that it serves people who run nothing else of Shale"},
		{"memcache/commands", map[string]string{
			"memcache/advise":   "it is a subcommand",
			"memcache/capture":  "it is a subcommand",
			"memcache/exporter": "it is a subcommand",
			"memcache/router":   "it is a subcommand",
			"memcache/server":   "it is a subcommand",
			"memcache/top":      "it is a subcommand",
		}, "a group lists its subcommands"},
		{"cache/memcached", map[string]string{
			"cache":         "a tier keeps the contract",
			"memcache":      "values lie on memcached servers",
			"memcache/meta": "a lookup claims what is missing by flags of the protocol",
			"memcache/pipe": "what a server refuses is told from what it did not get",
		}, "a tier holds values by key; it never knows what they mean"},
	}
}
