package archtest

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
)

// room is a package below internal/ and what it may import of the others.
type room struct {
	name string
	// may lists the rooms that it may import, each with the reason. Every room may import the leaves.
	may map[string]string
	// why says what a further arrow would break.
	why string
}

// readAgain is the reason of rooms whose files may change while the server runs.
const readAgain = "files are read again when they change"

// rooms returns the allow-list, one row a package. A name that ends in /* stands for the packages directly
// below it that have no row of their own. Every row names a package, and every arrow is used.
func rooms() []room {
	const (
		language  = "a language sees series and costs, not where they come from"
		callsRead = "a language asks for series"
	)
	return slices.Concat(countingRooms(), writeRooms(), bucketRooms(), catalogRooms(), partRooms(), headRooms(), loadRooms(), logqlRooms(), graphiteRooms(), moveRooms(), planRooms(), memcacheRooms(), cacheRooms(), peerRooms(), appRooms(), progressRooms(), []room{
		{"model", nil, "model holds the words that all rooms speak; if it knew a room, no room could change alone"},
		{"heap", nil, "heap is a data structure; it knows no room, not even model"},
		{"nametree", nil, "a tree of names is bytes, whoever stores it or walks it"},
		{"pyregexp", nil, "a pattern matches text, whatever it means"},
		{"event", nil, "an event is a line with a form; who writes and reads it does not matter"},
		{"peerhost", nil, "a host is an address, whatever it sends"},
		{"roots", nil, "a file of authorities is read the same way for every server"},
		{"filewatch", nil, "a file changes, whatever it holds"},
		{"carbonconf", map[string]string{"filewatch": readAgain}, "a file has sections and keys; what they mean is for the rooms that obey them"},
		{"journal", nil, "the log knows batches, not the writer or the reader"},
		{"store/archive", map[string]string{
			"cache":          "pages are looked up in the tiers",
			"cache/ledger":   "what queries ask for is counted",
			"store/part":     "a block is a part file",
			"store/catalog":  "the catalogue says which blocks to open",
			"store/deletion": "deleted rows are cut out",
		}, "the archive takes its bytes through a small interface, so that cache tiers fit between it and the bucket"},
		{"store/compact", map[string]string{
			"bucket":          "a live block without an object is damage",
			"store/part":      "the file format merges parts",
			"store/catalog":   "the result is committed",
			"store/deletion":  "deleted rows are cut out",
			"store/retention": "expired rows are cut out, and blocks are grouped by their age",
			"repair":          "a bucket that was inspected has repairs",
		}, "compaction rewrites blocks; it never sees the recent past"},
		{"read", map[string]string{"sketch": "labels are counted in bounded memory"}, "the read path declares its sources, and the rooms that hold series implement them"},
		{"read/results", nil, "results are kept by what was asked; it never knows how they are computed"},
		{"read/slots", nil, "functions over windows know rows alone"},
		{"read/promql", map[string]string{"read": callsRead, "read/results": "values of nodes are kept", "read/slots": "some windows consist of rollups"}, language},
		{"bill", nil, "budgets and prices count requests and bytes, wherever they come from"},
		{"auth", map[string]string{
			"auth/issuer": "a JWT is verified with the keys of its issuer",
			"filewatch":   readAgain,
		}, "a token has rights and tenants, whatever endpoints there are"},
		{"auth/issuer", nil, "a claim is a word with a signature; what it lets in is for auth"},
		{"auth/certs", nil, "a handshake proves a name; what the name may do is for auth"},
		{"store/changes", nil, "changes are numbers by tenant and time; who makes them and who asks does not matter"},
		{"api/answer", nil, "an answer is bytes and what they depend on; how it was computed does not matter"},
		{"api", map[string]string{
			"bill":       "the pipeline refuses queries beyond their budgets, and states bills",
			"api/answer": "the pipeline keeps answers, and gives them again",
			"pressure":   "a tenant has fewer turns while queries wait for processors",
			"turns":      "queries wait for their turn",
		}, "the part that all dialects share knows no dialect and no language"},
		{"api/admin", map[string]string{
			"api": "one pipeline serves the requests of all dialects",
		}, "administration asks functions that app hands in"},
		{"api/prom", map[string]string{
			"api":         "one pipeline serves the requests of all dialects",
			"read/promql": "this dialect serves this language",
		}, "HTTP is a skin: it asks a language, never the store"},
		{"api/prom/oracle", nil, "the oracle is a module of its own, which compares from outside"},
		{"api/loki", map[string]string{
			"api":                 "one pipeline serves the requests of all dialects",
			"read/logql":          "this dialect serves this language",
			"read/logql/fields":   "detected_fields writes the fields that it finds",
			"read/logql/patterns": "patterns writes the patterns that it finds",
			"read/logql/syntax":   "format_query lays out a parsed query",
			"read/logql/vector":   "series of numbers are written from the matrix of a result",
		}, "HTTP is a skin: it asks a language, never the store"},
		{"plot/graph", nil, "a graph is made of numbers, wherever they come from"},
		{"plot", nil, "a chart is made of numbers, wherever they come from"},
		{"client", nil, "a client judges a server from outside, so it never imports the engine"},
		{"terminal", nil, "text for people is made of bytes and labels, wherever they come from"},
		{"terminal/moment", map[string]string{"config": "durations are written as in settings"}, "a point of time is text, whatever it is of"},
		{"terminal/plot", nil, "a chart is made of numbers, wherever they come from"},
		{"config", withKafka(withLocation(withServers(settings("api", "bill", "cache/ssd", "read/graphite/names", "read/graphite/policy", "read/promql", "read/results", "read/victorialogs", "store/compact", "store/head", "store/retention", "usage", "write", "write/graphite/rules", "write/groups", "write/logs", "write/replicas")))), "settings are plain values; app carries them into the rooms"},
		{"archtest", nil, "the rules of the house stand outside it"},
	})
}

// cacheRooms returns the rows of the cache.
func cacheRooms() []room {
	return []room{
		{"cache", nil, "the contract of tiers names values by keys; it never knows what they mean"},
		{"cache/*", map[string]string{
			"cache":        "a tier keeps the contract",
			"cache/ledger": "a tier says what enters and leaves",
		}, "a tier holds values by key; it never knows what they mean"},
		{"cache/ssd", map[string]string{
			"cache":        "a tier keeps the contract",
			"cache/admit":  "it decides what is worth writing",
			"cache/ledger": "a tier says what enters and leaves",
		}, "a tier holds values by key; it never knows what they mean"},
		{"cache/ledger", map[string]string{
			"cache": "touches are those of keys",
		}, "the ledger counts what tiers and queries tell it; it knows no tier"},
		{"cache/curve", map[string]string{
			"cache/ledger": "it sees the touches that the ledger counts",
			"cache/ram":    "a value takes as much memory as in the tier",
			"plan/evict":   "caches of other sizes are simulated by the code of the tiers",
		}, "a simulation sees hashes and sizes, and no tier"},
		{"cache/report", map[string]string{
			"bill":         "requests to the bucket have a price",
			"cache/curve":  "curves say what other sizes would do",
			"cache/ledger": "the ledger says what the tiers do",
			"cache/record": "a trace is recorded",
			"config":       "parameters have sizes and times",
			"plan/cluster": "memory and disks have a price",
		}, "answers are made of what others count; the server hands them out"},
		{"cache/show", map[string]string{
			"cache/curve":   "the axis has the simulated sizes",
			"cache/ledger":  "tiers have names",
			"cache/report":  "answers have its form",
			"client":        "the server is asked from outside",
			"config":        "flags have sizes and times",
			"plot":          "sizes are written as in charts",
			"terminal":      "the report is a table",
			"terminal/plot": "curves are drawn in the terminal",
		}, "a command has flags and output, and counts nothing"},
		{"cache/record", map[string]string{
			"cache/ledger": "it writes the touches that the ledger counts",
		}, "a trace has hashes and sizes, and nothing else"},
		{"cache/admit", nil, "admission counts queries of hashes; it knows neither keys nor values, so that a simulation can run it"},
	}
}

// moveRooms returns the rows of the tools that bring data from one store to another.
func moveRooms() []room {
	return []room{
		{"move/bucketcopy", map[string]string{
			"bucket":        "objects are copied from one store to another",
			"store/catalog": "commit records say which blocks to copy, and are copied last",
			"store/part":    "a block is verified by the checksums of its pages",
		}, "a copy moves bytes; it never sees rows"},
		{"move/tsdbimport", map[string]string{
			"bucket":      "blocks may lie in an object store",
			"client":      "samples are read back over the APIs",
			"move/remote": "samples are sent by it",
		}, "an import judges a server from outside, so it never imports the engine"},
		{"move/carbonexplain", map[string]string{
			"carbonconf":           "carbon.conf is a file of carbon",
			"read/graphite/policy": "policies are read as the server reads them",
			"terminal":             "reports show text that anybody may have written",
			"write/graphite/route": "the relay is read as the server reads it",
			"write/graphite/rules": "rules are read as the server reads them",
		}, "what a setting means is said from outside, without a server"},
		{"move/whisperimport", map[string]string{
			"client":               "points are read back over the APIs",
			"move/remote":          "points are sent by it",
			"read/graphite/policy": "rollups that a policy makes are left out, and others get the times that it defines",
			"load/progress":        "the command shows its progress",
			"terminal":             "reports show names that anybody may have chosen",
		}, "an import judges a server from outside, so it never imports the engine"},
		{"move/remote", map[string]string{
			"client": "requests are sent over the API",
		}, "sending knows no source"},
	}
}

// logqlRooms returns the rows of LogQL.
func logqlRooms() []room {
	return []room{
		{"read/victorialogs", map[string]string{
			"cache":      "counted rows are shared through its later tiers",
			"write/logs": "lines of another server get the labels and levels of those that are received",

			"read/victorialogs/breaker":    "a server that fails is left alone for a while",
			"read/victorialogs/draw":       "VictoriaLogs draws samples of lines",
			"read/victorialogs/pace":       "requests to the server run in turn",
			"read/victorialogs/permit":     "requests carry filters and credentials",
			"read/victorialogs/recent":     "samples of lines are kept",
			"read/victorialogs/rfc3339":    "VictoriaLogs writes times as text",
			"read/victorialogs/streamtext": "VictoriaLogs writes streams as text",
			"read/victorialogs/words":      "lines are selected by words",
			"read/victorialogs/watch":      "what was kept ends when lines of the server change",
		}, "a source answers requests; it knows no language"},
		{"read/victorialogs/breaker", nil, "it sees outcomes, not what was asked"},
		{"read/victorialogs/draw", map[string]string{"write/logs": "a sample has the fields of levels"}, "it writes requests, and sends none"},
		{"read/victorialogs/permit", nil, "it reads settings and a file"},
		{"read/victorialogs/recent", nil, "it keeps bytes, whatever they are"},
		{"read/victorialogs/rfc3339", nil, "it reads text"},
		{"read/victorialogs/streamtext", nil, "it reads text"},
		{"read/victorialogs/words", nil, "it reads text"},
		{"read/victorialogs/watch", nil, "it sees numbers of lines, not how they are asked for"},
		{"read/victorialogs/pace", map[string]string{"turns": "requests wait for their turn"}, "it sees outcomes, not what was asked"},
		{"read/logql", map[string]string{
			"read":                 "lines come from the read path",
			"read/results":         "values of leaves are kept",
			"heap":                 "volumes merge the chunks of a stream by time",
			"read/logql/selection": "lines are found by it and offered to sinks",
			"read/logql/plan":      "a metric query is evaluated by its plan",
			"read/logql/vector":    "the result of a metric query is a matrix",
			"read/logql/syntax":    "a query is parsed",
			"read/logql/line":      "an entry keeps what the stages made of a line",
			"read/logql/fields":    "fields are found in the lines of a query",
			"read/logql/patterns":  "patterns are kept by it, and found in samples",
		}, "a language sees series and costs, not where they come from"},
		{"read/logql/selection", map[string]string{
			"read":              "lines come from the read path",
			"read/logql/syntax": "a program is compiled from the stages of the syntax tree",
			"read/logql/line":   "its stages run on each line",
		}, "a scan knows a sink, not what a result consists of"},
		{"read/logql/plan", map[string]string{
			"read/logql/sample": "a leaf of a plan is a range aggregation",
			"read/logql/vector": "operations on values are carried out by it",
			"read/logql/syntax": "a plan is compiled from the syntax tree",
		}, "a plan is evaluated over any leaves, so that its tests need no lines"},
		{"read/logql/vector", map[string]string{
			"read/logql/syntax": "operators and groupings are nodes of the syntax tree",
		}, "arithmetic over series knows neither lines nor stores"},
		{"read/logql/sample", map[string]string{
			"read/logql/selection": "lines are found by it and offered to a sink",
			"read/logql/syntax":    "a range aggregation is a node of the syntax tree",
			"read/logql/line":      "a line's number and labels come from its stages",
			"read/logql/window":    "samples add up in windows",
			"read/logql/vector":    "its result is a matrix",
		}, "numbers are made of lines without knowing what is computed with them"},
		{"read/logql/window", map[string]string{
			"read/logql/syntax": "aggregations are named in the syntax tree",
		}, "aggregating over time knows neither lines nor labels"},
		{"read/logql/counts", nil, "counters of test builds know nothing of what they count"},
		{"read/logql/syntax", map[string]string{"read/logql/counts": "tests count parses"}, "a syntax tree is text with a structure"},
		{"read/logql/line", map[string]string{
			"read/logql/counts":       "tests count plans and regular expressions",
			"read/logql/line/extract": "fields of samples are found by it in plain lines",
			"read/logql/line/match":   "line filters and regular expressions run in it",
			"read/logql/syntax":       "a pipeline is built from the stages of the syntax tree",
		}, "a stage sees one line and its labels"},
		{"read/logql/fields", map[string]string{
			"read/logql/line":   "the parsers of LogQL extract fields",
			"read/logql/syntax": "parsers are compiled from stages",
		}, "what the fields of a line are does not depend on how the line was found"},
		{"read/logql/patterns", nil, "a pattern is made of bytes, wherever lines come from"},
		{"read/logql/line/extract", nil, "finding fields is bytes to bytes, without labels and stages"},
		{"read/logql/line/match", map[string]string{
			"read/logql/counts": "tests count regular expressions",
			"read/logql/syntax": "line filters are nodes of the syntax tree",
		}, "whether a line matches does not depend on its labels"},
	}
}

// headRooms returns the rooms of the recent past.
func headRooms() []room {
	return []room{
		{"journal/*", map[string]string{
			"journal": "every journal writes the same records",
			"repair":  "damaged segments are set aside",
		}, "a journal hands batches to a function; it knows no head"},
		{"journal/kafka", map[string]string{
			"journal": "every journal writes the same records",
		}, "a journal hands batches to a function; it knows no head, and not which partition a series belongs to"},
		{"journal/state", map[string]string{
			"store/topics": "partitions have bounds",
		}, "a record is bytes, however they travel"},
		{"journal/kafka/setup", map[string]string{
			"bucket":          "the bucket records which topics carry writes",
			"bucket/location": "the bucket is a flag",
			"bucket/provider": "the bucket is opened",
			"config":          "flags are settings",
			"journal/kafka":   "brokers are asked, and topics made",
			"store/catalog":   "the catalogue says what the bucket has of a partition",
			"store/topics":    "epochs are recorded",
			"terminal":        "the report is a table",
		}, "a command has flags and output; it reads no record of a topic"},
		{"store/topics", map[string]string{
			"bucket":                 "an epoch is an object",
			"store/catalog":          "ships name epochs",
			"store/catalog/checksum": "objects have checksums",
		}, "which partition a series belongs to follows from its key, wherever the partition is kept"},
		{"store/ship", map[string]string{
			"bucket":        "blocks are objects",
			"store/catalog": "the catalogue makes blocks visible",
			"store/head":    "blocks are those of a head",
		}, "shipping moves files; it never reads a row"},
		{"ingest", map[string]string{
			"bucket":         "blocks go to the bucket",
			"journal/kafka":  "a partition is read",
			"store/catalog":  "the catalogue says where a partition goes on",
			"store/deletion": "orders to delete are checked before the head takes them",
			"store/head":     "a partition has a head of its own",
			"store/part":     "the labels of earlier owners' series are in blocks",
			"store/ship":     "the head is shipped",
			"store/topics":   "an epoch has the partition",
		}, "a partition fills a head; it serves no query and knows no protocol"},
		{"repair", nil, "setting files aside is the same for every room"},
		{"store/head", map[string]string{
			"repair":              "damaged files are set aside",
			"store/part":          "flushes and merges write parts",
			"store/known":         "series that are known need no labels",
			"store/head/rows":     "applied rows are buffered and flushed",
			"store/head/labels":   "labels of new series are buffered and flushed",
			"store/head/local":    "the head decides which parts its folder has",
			"store/head/metadata": "metric metadata is kept with the data",
			"store/head/query":    "queries get a view of the buffers and parts",
			"store/deletion":      "the journal holds deletions at their place among the batches",
		}, "the head ships through an interface that it declares, so that it never knows a bucket or a catalogue"},
		{"store/known", nil, "the known set knows keys alone, so that its memory per series stays visible in one place"},
		{"store/head/keysort", nil, "sorting needs keys alone"},
		{"store/head/rows", map[string]string{
			"store/head/keysort": "a run is sorted by key",
			"store/part":         "a run is a stream that merging reads",
		}, "buffered rows know no lock, file or query, so that they can be tested alone"},
		{"store/head/labels", map[string]string{
			"store/head/keysort": "a run is sorted by key",
			"store/part":         "a run is a stream that merging reads",
		}, "buffered labels know no lock, file or query, so that they can be tested alone"},
		{"store/head/local", map[string]string{
			"store/part":     "a local part is a part file",
			"store/deletion": "the manifest holds deletions",
		}, "the folder keeps the parts that it is told to keep; what they are for is the head's decision"},
		{"store/head/metadata", map[string]string{
			"store/head/local": "its file has the form of the manifest",
		}, "metric metadata is independent of series and rows"},
		{"store/head/query", map[string]string{
			"store/part":        "local parts are read",
			"store/head/rows":   "sealed runs are read",
			"store/head/labels": "sealed runs are read",
			"store/head/local":  "local parts are read",
			"store/deletion":    "deleted rows are cut out",
		}, "a query sees a view of the head, which it can neither change nor lock"},
	}
}

// settings returns the arrows to the rooms that own settings.
func settings(rooms ...string) map[string]string {
	may := make(map[string]string)
	for _, room := range rooms {
		may[room] = "config embeds the settings of the room, a plain struct, and uses nothing else of it"
	}
	return may
}

// withLocation adds the arrow by which the setting of the bucket is checked.
func withLocation(may map[string]string) map[string]string {
	may["bucket/location"] = "the setting of the bucket is a URL"
	return may
}

// withKafka adds the arrow by which the settings of Kafka are checked.
func withKafka(may map[string]string) map[string]string {
	may["journal/kafka"] = "the settings of Kafka must make sense together"
	return may
}

// withServers adds the arrows by which the settings of memcached are checked.
func withServers(may map[string]string) map[string]string {
	may["memcache"] = "the setting of memcached names servers"
	may["memcache/hash"] = "the way to spread keys has a name"
	return may
}

// everyone is the room that may import all others: it builds a running process out of them.
const everyone = "app"

// arrows checks every import between rooms. Tests may import any room except app, which only cmd, test/ and
// bench import; the product never imports bench. A package whose name ends in "test" is a suite: it may
// import its parent, what its parent may, and other suites; only tests and suites import it. The product
// never imports fault injection.
func arrows(t *tree, table []room) []string {
	var bad []string
	for _, f := range t.files {
		for imported, node := range f.imports() {
			if strings.HasPrefix(imported+"/", modulePath+"/bench/") && !f.below("bench") {
				bad = append(bad, fmt.Sprintf("%s: imports %s: the benchmark is no part of the product", t.at(node), imported))
			}
			to, ok := strings.CutPrefix(imported, modulePath+"/internal/")
			if !ok {
				continue
			}
			if problem := arrow(f, to, table); problem != "" {
				bad = append(bad, fmt.Sprintf("%s: imports %s: %s", t.at(node), to, problem))
			}
		}
	}
	sort.Strings(bad)
	return bad
}

func arrow(f *file, to string, table []room) string {
	if isSuite(to) && !f.isTest() && !isSuite(f.dir()) {
		return "a test suite may be imported by tests only"
	}
	if to == "bucket/fault" && !f.isTest() && !f.below("bench") && !f.below("test") {
		return "tests and bench inject faults, the product has none"
	}
	from, ok := strings.CutPrefix(f.dir(), "internal/")
	switch {
	case !ok: // cmd, test/ and bench
		return ""
	case from == everyone || strings.HasPrefix(from, everyone+"/"):
		return ""
	case to == everyone:
		return "app knows every room, and no room knows app; take what you need as a parameter"
	case f.isTest():
		return ""
	case isSuite(from):
		from = path.Dir(from)
		if to == from || isSuite(to) {
			return ""
		}
	}
	r := lookup(from, table)
	if r == nil {
		return fmt.Sprintf("the room %s is not in the table of internal/archtest/arrows.go; give it a row", from)
	}
	if isLeaf(to) && !isLeaf(from) || to == from || r.may[to] != "" {
		return ""
	}
	return fmt.Sprintf("%s may import %s, because %s", from, r.list(), r.why)
}

// isLeaf reports whether every room may import the room: words, data structures, scanners, and files that
// many rooms read.
func isLeaf(room string) bool {
	return room == "model" || room == "heap" || room == "jsonscan" || room == "roots"
}

func isSuite(room string) bool { return strings.HasSuffix(room, "test") && room != "archtest" }

// lookup finds the row of a package: its own, or that of its siblings (parent/*).
func lookup(name string, table []room) *room {
	var siblings *room
	for i := range table {
		switch table[i].name {
		case name:
			return &table[i]
		case path.Dir(name) + "/*":
			siblings = &table[i]
		}
	}
	return siblings
}

func (r *room) list() string {
	names := []string{"model"}
	for n := range r.may {
		names = append(names, n)
	}
	sort.Strings(names[1:])
	return strings.Join(names, ", ")
}

// stale complains about rows without a package, packages without a row, and arrows that no file outside tests
// uses. Go forbids circles among the imports, so that the arrows that are used run down.
func stale(t *tree, table []room) []string {
	used := map[string]map[string]bool{} // by row, the rooms that its packages import
	var bad []string
	for _, f := range t.files {
		from, ok := strings.CutPrefix(f.dir(), "internal/")
		if !ok || f.isTest() || isSuite(from) || from == everyone {
			continue
		}
		r := lookup(from, table)
		if r == nil {
			bad = append(bad, fmt.Sprintf("%s: has no row in the table of internal/archtest/arrows.go", f.path))
			continue
		}
		if used[r.name] == nil {
			used[r.name] = map[string]bool{}
		}
		for imported := range f.imports() {
			used[r.name][strings.TrimPrefix(imported, modulePath+"/internal/")] = true
		}
	}
	for _, r := range table {
		if used[r.name] == nil {
			bad = append(bad, fmt.Sprintf("%s: this row of internal/archtest/arrows.go names no package", r.name))
			continue
		}
		for to := range r.may {
			if !used[r.name][to] {
				bad = append(bad, fmt.Sprintf("%s -> %s: no import uses this arrow of internal/archtest/arrows.go", r.name, to))
			}
		}
	}
	sort.Strings(bad)
	return bad
}
