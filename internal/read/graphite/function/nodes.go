package function

import (
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/series"
	"github.com/shaledb/shale/internal/read/graphite/syntax"
)

// Key returns the nodes and tags of a series, joined with dots. A number is a node of its name, or of the
// first path in a name that is a call; anything else is a tag. What is missing is empty.
func Key(s *series.Series, nodes []any) string {
	path := s.Name
	if strings.HasSuffix(path, ")") {
		if first := syntax.FirstPathOf(path); first != "" {
			path = first
		}
	}
	metric, _, _ := strings.Cut(path, ";")
	parts := strings.Split(metric, ".")
	found := make([]string, len(nodes))
	for i, n := range nodes {
		found[i] = nodeOrTag(s, parts, n)
	}
	return strings.Join(found, ".")
}

func nodeOrTag(s *series.Series, parts []string, n any) string {
	at, isNode := int64(0), true
	switch n := n.(type) {
	case int64:
		at = n
	case float64:
		at = int64(n)
		isNode = n == float64(at)
	default:
		isNode = false
	}
	if at < 0 {
		at += int64(len(parts))
	}
	if isNode && at >= 0 && at < int64(len(parts)) {
		return parts[at]
	}
	return s.Tags[series.Text(n)]
}

// Groups divides a list by keys, in the order in which keys are first seen.
func Groups(list series.List, key func(*series.Series) string) (keys []string, groups map[string]series.List) {
	groups = make(map[string]series.List)
	for _, s := range list {
		k := key(s)
		if _, seen := groups[k]; !seen {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], s)
	}
	return keys, groups
}

// Expressions returns the different paths of series, joined with commas.
func Expressions(list series.List) string {
	seen := make(map[string]struct{}, 1)
	var paths []string
	for _, s := range list {
		if _, again := seen[s.Path]; !again {
			seen[s.Path] = struct{}{}
			paths = append(paths, s.Path)
		}
	}
	return strings.Join(paths, ",")
}
