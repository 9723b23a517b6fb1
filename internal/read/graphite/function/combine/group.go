package combine

import (
	"slices"
	"sort"
	"strings"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// reduce makes one series of a group by a callback: a function that aggregates, or an aggregation.
func reduce(c *function.Call, list series.List, callback string) (*series.Series, error) {
	var made series.List
	var err error
	if f := c.Lookup(callback); f != nil && f.Aggregator {
		made, err = c.Apply(c, f, list)
	} else {
		made, err = aggregate(c, list, callback, c.XFF)
	}
	if err != nil {
		return nil, err
	}
	if len(made) == 0 {
		return nil, c.Errorf("%s gives no series for a group", callback)
	}
	return made[0], nil
}

func groupByNodes(c *function.Call, callback string, nodes []any) (any, error) {
	keys, groups := function.Groups(c.List(0), func(s *series.Series) string { return function.Key(s, nodes) })
	var out series.List
	for _, key := range keys {
		made, err := reduce(c, groups[key], callback)
		if err != nil {
			return nil, err
		}
		made.Name = key
		out = append(out, made)
	}
	return out, nil
}

func groupByTags(c *function.Call) (any, error) {
	list, callback := c.List(0), c.Text(1)
	var tags []string
	byName := false
	for i := range c.Rest(2) {
		tag := c.Text(2 + i)
		byName = byName || tag == "name"
		tags = append(tags, tag)
	}
	// Without the name, the result is called like all of the series, or like the callback.
	shared := callback
	if names := distinctNames(list); len(names) == 1 {
		shared = names[0]
	}
	keys, groups := function.Groups(list, func(s *series.Series) string {
		name := shared
		if byName {
			name = s.Tags["name"]
		}
		var pairs []string
		for _, tag := range tags {
			if tag != "name" {
				pairs = append(pairs, tag+"="+s.Tags[tag])
			}
		}
		sort.Strings(pairs)
		return strings.Join(append([]string{name}, pairs...), ";")
	})
	var out series.List
	for _, key := range keys {
		made, err := reduce(c, groups[key], callback)
		if err != nil {
			return nil, err
		}
		made.Rename(key)
		made.Tags = keyTags(key)
		out = append(out, made)
	}
	return out, nil
}

func distinctNames(list series.List) []string {
	var names []string
	for _, s := range list {
		if name := s.Tags["name"]; !slices.Contains(names, name) {
			if names = append(names, name); len(names) > 1 {
				break
			}
		}
	}
	return names
}

// keyTags returns the tags in a key. A tag that a series lacks is left out; graphite-web fails there.
func keyTags(key string) map[string]string {
	segments := strings.Split(key, ";")
	tags := map[string]string{"name": strings.TrimLeft(segments[0], "~")}
	for _, segment := range segments[1:] {
		if tag, value, _ := strings.Cut(segment, "="); value != "" {
			tags[tag] = value
		}
	}
	return tags
}

func group(c *function.Call) (any, error) { return c.Joined(0), nil }

// mapSeries divides a list by nodes or tags.
func mapSeries(c *function.Call) (any, error) {
	keys, groups := function.Groups(c.List(0), func(s *series.Series) string { return function.Key(s, c.Rest(1)) })
	out := make([]series.List, 0, len(keys))
	for _, key := range keys {
		out = append(out, groups[key])
	}
	return out, nil
}

// reduceSeries calls a function with the series of each list, one for each matcher, in the order of the
// matchers.
func reduceSeries(c *function.Call) (any, error) {
	lists, _ := c.Value(0).([]series.List)
	name, at := c.Text(1), c.Int(2)
	f := c.Lookup(name)
	if f == nil {
		return nil, c.Errorf("expected the name of a function, found %q", name)
	}
	var matchers []string
	for i := range c.Rest(3) {
		matchers = append(matchers, c.Text(3+i))
	}
	var keys []string
	found := map[string]series.List{}
	for _, list := range lists {
		for _, s := range list {
			nodes := strings.Split(s.Name, ".")
			i := at
			if i < 0 {
				i += int64(len(nodes))
			}
			if i < 0 || i >= int64(len(nodes)) {
				return nil, c.Errorf("the name %q has no node %d", s.Name, at)
			}
			m := slices.Index(matchers, nodes[i])
			if m < 0 {
				continue
			}
			key := strings.Join(nodes[:i], ".") + ".reduce." + name
			if found[key] == nil {
				found[key] = make(series.List, len(matchers))
				keys = append(keys, key)
			}
			found[key][m] = s
		}
	}
	var out series.List
	for _, key := range keys {
		args := make([]series.List, len(matchers))
		for i, s := range found[key] {
			if s == nil {
				return nil, c.Errorf("%s has no series for the matcher %q", strings.TrimSuffix(key, ".reduce."+name), matchers[i])
			}
			args[i] = series.List{s}
		}
		made, err := c.Apply(c, f, args...)
		if err != nil {
			return nil, err
		}
		if len(made) == 0 {
			return nil, c.Errorf("%s gives no series for %s", name, key)
		}
		made[0].Name = key
		out = append(out, made[0])
	}
	return out, nil
}

// applyByNode evaluates a target for each different beginning of the names, which takes the place of %.
func applyByNode(c *function.Call) (any, error) {
	list, n := c.List(0), c.Int(1)
	seen := map[string]struct{}{}
	var prefixes []string
	for _, s := range list {
		nodes := strings.Split(s.Name, ".")
		end := n + 1
		if end < 0 {
			end = max(0, end+int64(len(nodes)))
		}
		prefix := strings.Join(nodes[:min(end, int64(len(nodes)))], ".")
		if _, again := seen[prefix]; !again {
			seen[prefix] = struct{}{}
			prefixes = append(prefixes, prefix)
		}
	}
	slices.Sort(prefixes)
	var out series.List
	for _, prefix := range prefixes {
		made, err := c.Target(c, strings.ReplaceAll(c.Text(2), "%", prefix))
		if err != nil {
			return nil, err
		}
		for _, s := range made {
			if c.Text(3) != "" {
				s.Name = strings.ReplaceAll(c.Text(3), "%", prefix)
			}
			s.Path = prefix
			last := list[len(list)-1]
			s.Start, s.End = last.Start, last.End
			out = append(out, s)
		}
	}
	return out, nil
}
