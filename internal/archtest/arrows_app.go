package archtest

// appRooms returns the rows of what app builds processes with, besides the rooms that it connects.
func appRooms() []room {
	return []room{
		{"app/buckets", map[string]string{
			"bucket":          "it is a bucket",
			"bucket/check":    "a store is checked before it is used",
			"bucket/coalesce": "reads that are near are joined",
			"bucket/hedge":    "a slow read is sent twice",
			"bucket/location": "errors name the bucket",
			"bucket/pace":     "requests wait for their turn",
			"bucket/retry":    "requests are repeated",
			"bucket/share":    "queries share the requests",
			"config":          "the settings of requests",
			"store/catalog":   "a bucket without a seed is new",
		}, "a bucket has objects, whatever is in them"},
		{"app/cardinality", map[string]string{
			"api/prom":         "it has an API of counts",
			"bill":             "what queries read has prices",
			"dayfile":          "days have names",
			"read":             "labels are counted as they are read",
			"read/asked":       "it says what queries have asked for",
			"read/promql":      "matchers are those of PromQL",
			"sketch":           "labels are counted in bounded memory",
			"store/head":       "it says which series are active",
			"store/head/query": "it has the series of now",
			"usage":            "it says how many samples a series has",
			"write/creators":   "it says what has created series",
		}, "series are counted wherever they are, and whoever asks"},
		{"app/conns", map[string]string{"peerhost": "a host with many connections gives some up for others"}, "a connection is open or closed, whatever is asked over it"},
		{"app/deletions", map[string]string{
			"api/loki":         "it has an API of deletions",
			"bucket":           "what becomes of a request is decided there",
			"journal/kafka":    "an order goes to every partition",
			"read/logql":       "a filter is a query",
			"read/remote":      "queries tell others what is deleted",
			"read/remote/wire": "queries tell others what is deleted",
			"store/catalog":    "the catalogue has deletions",
			"store/decision":   "a request is decided once",
			"store/deletion":   "orders hold deletions",
			"store/head/query": "deletions hide rows of a head",
			"store/topics":     "a partition is a journal",
		}, "a deletion has steps in several stores, whoever asks for it"},
		{"app/following", map[string]string{
			"read":        "rows that are not in the bucket have a source",
			"read/logql":  "it follows lines for queries",
			"read/remote": "other processes apply lines",
		}, "a line is followed wherever it comes from"},
		{"app/gateway", map[string]string{
			"bucket":              "it says which topic takes writes",
			"journal/kafka":       "batches go to a topic",
			"journal/state":       "ingesters say which partitions lack labels",
			"store/catalog/entry": "names of ships have numbers",
			"store/head":          "its limits are settings",
			"store/families":      "senders describe metric families",
			"store/head/metadata": "its limits are settings",
			"store/known":         "an announcer says which labels travel",
			"store/topics":        "a key has a partition",
			"write":               "it is a write path",
			"write/groups":        "metrics and label sets have limits on their series",
			"write/replicas":      "gateways elect the replicas of HA pairs together",
		}, "a gateway takes batches to Kafka; receivers are mounted by app"},
		{"app/ingester", map[string]string{
			"api/peer":         "other processes ask for partitions",
			"app/deletions":    "queries say what is deleted",
			"cache":            "pages have keys",
			"cache/ram":        "pages of heads are kept",
			"config":           "a member has a name",
			"ingest":           "an owner holds the partitions",
			"journal/kafka":    "a group divides partitions",
			"journal/state":    "gateways are told what partitions lack",
			"read":             "a partition is a source",
			"read/remote/wire": "a partition is a journal",
			"store/topics":     "a topic has partitions",
			"write/groups":     "metrics and label sets have limits on their series",
		}, "partitions come and go, whatever their rows are"},
	}
}

// progressRooms know what other processes do.
func progressRooms() []room {
	return []room{
		{"app/peers", map[string]string{
			"api":         "endpoints are wrapped before they are mounted",
			"config":      "settings name the others",
			"read/remote": "its source asks the others",
		}, "a token and a certificate let a process in, whatever it asks"},
		{"app/progress", map[string]string{
			"bucket":        "it says which topics carry writes",
			"journal/kafka": "brokers say where partitions end",
			"read/remote":   "queries ask what must be seen",
			"store/catalog": "the log of ships says what the bucket has",
			"store/topics":  "a partition is a journal",
		}, "how far a partition has come does not depend on its rows"},
		{"app/disk", nil, "a folder has a size, whatever lies in it"},
	}
}
