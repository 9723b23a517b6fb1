package archtest

// graphiteRooms returns the rows of Graphite's names, functions and API.
func graphiteRooms() []room {
	const (
		isRow     = "a function is a row of the table"
		computes  = "functions compute series"
		intervals = "arguments are intervals and times"
	)
	return []room{
		{"read/graphite/attime", nil, "a time is made of text and the time of the request"},
		{"read/graphite/names", map[string]string{"nametree": "globs walk trees of names"}, "names are found in sets that sources hand in, wherever these are stored"},
		{"api/carbonlink", map[string]string{
			"write/graphite/pickle": "requests are pickles",
		}, "queries of the cache are a protocol of their own; points come through an interface"},
		{"api/graphite", map[string]string{
			"api":                    "one pipeline serves the requests of all dialects",
			"read/graphite":          "this dialect serves this language",
			"read/graphite/attime":   "from and until are times in this grammar",
			"read/graphite/names":    "this dialect serves names",
			"read/graphite/series":   "responses are written from the series of a result",
			"read/graphite/function": "/functions shows the rows of the table",
			"read/graphite/events":   "this dialect serves events",
			"event":                  "responses are written from events",
			"plot/graph":             "png and svg are drawn",
		}, "HTTP is a skin: it asks a language, never the store"},
		{"read/graphite", map[string]string{
			"read":                             "a language asks for series",
			"read/graphite/syntax":             "a target is parsed",
			"read/graphite/series":             "a path gives series",
			"read/graphite/policy":             "the policy of a name lays out its rows",
			"pyregexp":                         "tags are matched by regular expressions of Python",
			"read/graphite/function":           "a call is bound to a row of the table",
			"read/graphite/function/calculate": isRow,
			"read/graphite/function/choose":    isRow,
			"read/graphite/function/combine":   isRow,
			"read/graphite/function/draw":      isRow,
			"read/graphite/function/rename":    isRow,
			"read/graphite/function/transform": isRow,
		}, "a language sees series and costs, not where they come from"},
		{"read/graphite/policy", map[string]string{
			"carbonconf": "policies are files of carbon",
			"filewatch":  readAgain,
			"pyregexp":   "patterns are those of Python",
		}, "a policy lays rows on a grid, wherever they come from"},
		{"read/graphite/events", map[string]string{
			"event":      "lines are read as events",
			"read/logql": "events are lines, and LogQL finds lines",
		}, "an event is found among lines, wherever these are stored"},
		{"read/graphite/syntax", nil, "a tree is text with a structure; it knows no function"},
		{"read/graphite/attime", nil, "a time is text with a meaning; it knows no request"},
		{"read/graphite/series", nil, "series on grids know neither functions nor the store"},
		{"read/graphite/function", map[string]string{
			"pyregexp":             "names are matched by regular expressions of Python",
			"read/graphite/attime": intervals,
			"read/graphite/series": computes,
			"read/graphite/syntax": "the nodes of a name that is a call are those of its first path",
		}, "the table declares what it needs of the evaluator"},
		{"read/graphite/function/calculate", map[string]string{
			"read/graphite/attime": intervals, "read/graphite/function": isRow, "read/graphite/series": computes,
		}, "a family of functions sees only its arguments"},
		{"read/graphite/function/choose", map[string]string{
			"read/graphite/attime": intervals, "read/graphite/function": isRow, "read/graphite/series": computes,
		}, "a family of functions sees only its arguments"},
		{"read/graphite/function/combine", map[string]string{
			"read/graphite/function": isRow, "read/graphite/series": computes,
		}, "a family of functions sees only its arguments"},
		{"read/graphite/function/draw", map[string]string{
			"read/graphite/attime": intervals, "read/graphite/function": isRow, "read/graphite/series": computes,
		}, "a family of functions sees only its arguments"},
		{"read/graphite/function/rename", map[string]string{
			"pyregexp": "names are replaced by regular expressions", "read/graphite/function": isRow, "read/graphite/series": computes,
		}, "a family of functions sees only its arguments"},
		{"read/graphite/function/transform", map[string]string{
			"read/graphite/attime": intervals, "read/graphite/function": isRow, "read/graphite/series": computes,
		}, "a family of functions sees only its arguments"},
	}
}
