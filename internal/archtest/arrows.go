package archtest

import (
	"fmt"
	"path"
	"sort"
	"strings"
)

// room is a package below internal/ and what it may import of the others.
type room struct {
	name string
	// may lists the rooms that it may import, each with the reason. Every room may import model.
	may map[string]string
	// why says what a further arrow would break.
	why string
}

// rooms returns the allow-list. A name that ends in /* stands for all packages below it that have no line of their own.
func rooms() []room {
	return append(headRooms(), []room{
		{"model", nil, "model holds the words that all rooms speak; if it knew a room, no room could change alone"},
		{"write", nil, "the write path declares what it needs of the journal and the head, and app fits them together"},
		{"write/*", map[string]string{
			"write": "a receiver turns bytes into batches and pushes them",
		}, "a protocol knows the write path and nothing of the store, so that receivers come and go alone"},
		{"write/wire", nil, "the form of protobuf is nobody's matter but the receivers'"},
		{"write/promwrite", receiver("write/body", "write/wire"), "a protocol knows the write path and nothing of the store, so that receivers come and go alone"},
		{"write/lokipush", receiver("write/body", "write/logs", "write/wire"), "a protocol knows the write path and nothing of the store, so that receivers come and go alone"},
		{"write/otlp", receiver("write/body", "write/logs", "write/wire"), "a protocol knows the write path and nothing of the store, so that receivers come and go alone"},
		{"journal", nil, "the log knows batches, not who writes or applies them"},
		{"journal/*", map[string]string{
			"journal": "every journal writes the same records",
		}, "a journal hands batches to a function; it knows no head"},
		{"store/part", nil, "the file format is pure bytes; who stores, caches or serves them is not its matter"},
		{"store/catalog", map[string]string{
			"bucket": "commit records are objects",
		}, "the catalogue knows which blocks live, not what is inside them"},
		{"store/archive", map[string]string{
			"store/part":    "a block is a part file",
			"store/catalog": "the catalogue says which blocks to open",
		}, "the archive takes its bytes through a small interface, so that tiers of cache fit between it and the bucket"},
		{"store/compact", map[string]string{
			"store/part":    "merging is the file format's work",
			"store/catalog": "the result is committed",
		}, "compaction rewrites blocks; it never sees the recent past"},
		{"bucket", nil, "the contract of object stores; what the objects mean is for its users"},
		{"bucket/*", map[string]string{
			"bucket": "a provider or wrapper fulfils the contract",
		}, "a provider knows bytes and names only"},
		{"cache", map[string]string{
			"memcache": "the shared tier speaks memcached",
		}, "a cache holds pages by address; it never knows what they say"},
		{"cache/*", map[string]string{
			"cache":    "a tier fulfils the order of tiers",
			"memcache": "the shared tier speaks memcached",
		}, "a cache holds pages by address; it never knows what they say"},
		{"read", nil, "the read path declares its sources; what holds series implements them, never the other way round"},
		{"read/*", map[string]string{
			"read": "a language asks for series",
		}, "a language sees series and costs, not where they come from"},
		{"read/logql", map[string]string{
			"read":              "it asks for lines",
			"read/logql/syntax": "a query is parsed",
			"read/logql/line":   "its stages are run on each line",
		}, "a language sees series and costs, not where they come from"},
		{"read/victorialogs", map[string]string{
			"read":       "it is a source",
			"read/logql": "it takes over nodes of a LogQL plan",
		}, "a language sees series and costs, not where they come from"},
		{"api", nil, "what all dialects share knows none of them, and no language"},
		{"api/*", map[string]string{
			"api":               "turns, bodies, compression and the statement of cost are the same in all dialects",
			"read":              "limits and the statement of cost are part of an answer",
			"read/promql":       "one dialect of HTTP serves this language",
			"read/logql":        "one dialect of HTTP serves this language",
			"read/logql/syntax": "and lays out what is written in it",
			"read/graphite":     "one dialect of HTTP serves this language",
			"cache":             "the response cache and the ledger's pages",
		}, "HTTP is a skin: it asks languages and the cache, never the store"},
		{"memcache", nil, "the memcached protocol knows nothing of the engine, not even its words"},
		{"load", map[string]string{
			"write/graphite":  "the generator's lines are this protocol's",
			"write/promwrite": "the generator's bodies are this protocol's",
			"write/lokipush":  "the generator's bodies are this protocol's",
			"cache":           "traces are replayed against the cache's policies",
		}, "a load generator judges a server from outside"},
		{"plan", map[string]string{
			"cache": "capacity is simulated with the policies that run",
			"load":  "capacity is planned for the same shapes of load",
		}, "planning needs no server"},
		{"config", nil, "settings are plain values; app carries them into the rooms"},
		{"archtest", nil, "the rules of the house stand outside it"},
	}...)
}

// headRooms returns the rooms of the recent past.
func headRooms() []room {
	return []room{
		{"store/head", map[string]string{
			"store/part":          "flushes and merges write parts",
			"store/head/known":    "series that are known need no labels",
			"store/head/rows":     "applied rows are buffered and flushed",
			"store/head/labels":   "labels of new series are buffered and flushed",
			"store/head/local":    "the head decides which parts its folder has",
			"store/head/metadata": "metric metadata is kept with the data",
			"store/head/query":    "queries get a view of the buffers and parts",
		}, "the head ships through an interface that it declares, so that it never knows a bucket or a catalogue"},
		{"store/head/known", nil, "the known set knows keys alone, so that its memory per series stays visible in one place"},
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
			"store/part": "a local part is a part file",
		}, "the folder keeps the parts that it is told to keep; what they are for is the head's decision"},
		{"store/head/metadata", map[string]string{
			"store/head/local": "its file has the form of the manifest",
		}, "metric metadata is independent of series and rows"},
		{"store/head/query", map[string]string{
			"store/part":        "local parts are read",
			"store/head/rows":   "sealed runs are read",
			"store/head/labels": "sealed runs are read",
			"store/head/local":  "local parts are read",
		}, "a query sees a view of the head, which it can neither change nor lock"},
	}
}

// receiver is what a protocol may import: the write path, and of what receivers share the rooms that are named.
func receiver(shared ...string) map[string]string {
	why := map[string]string{
		"write/body": "bodies are read and decompressed within the budget in one way",
		"write/logs": "streams and lines come to the same, whoever brings them",
		"write/wire": "protobuf is walked over where it lies",
	}
	may := map[string]string{"write": "a receiver turns bytes into batches and pushes them"}
	for _, room := range shared {
		may[room] = why[room]
	}
	return may
}

// everyone is the room that may import all others: it builds a running process out of them.
const everyone = "app"

// arrows checks every import between rooms. Tests may import any room, but app, of which only cmd, test/ and bench know;
// of bench nobody knows.
// A package whose name ends in "test" is a suite: it may import what its parent may, and its parent, and only tests
// import it.
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
		if to == from {
			return ""
		}
	}
	r := lookup(from, table)
	if r == nil {
		return fmt.Sprintf("the room %s is not in the table of internal/archtest/arrows.go; give it a line", from)
	}
	// Parts of one room, such as load and load/wire, share its arrows.
	if to == "model" && from != "memcache" || to == from || strings.HasPrefix(to, from+"/") && lookupExact(to, table) == nil {
		return ""
	}
	if r.may[to] != "" {
		return ""
	}
	return fmt.Sprintf("%s may import %s, because %s", from, list(r), r.why)
}

func isSuite(room string) bool { return strings.HasSuffix(room, "test") && room != "archtest" }

// lookup finds the line for a package: its own, that of its siblings (parent/*), or that of a parent.
func lookup(name string, table []room) *room {
	if r := lookupExact(name, table); r != nil {
		return r
	}
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if r := lookupExact(up+"/*", table); r != nil {
			return r
		}
		if r := lookupExact(up, table); r != nil {
			return r
		}
	}
	return nil
}

func lookupExact(name string, table []room) *room {
	for i := range table {
		if table[i].name == name {
			return &table[i]
		}
	}
	return nil
}

func list(r *room) string {
	if r.name == "memcache" {
		return "no room"
	}
	names := []string{"model"}
	for n := range r.may {
		names = append(names, n)
	}
	sort.Strings(names[1:])
	return strings.Join(names, ", ")
}
