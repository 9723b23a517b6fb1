package graphite

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/graphite/names"
)

// Finder finds names: a [names.Finder].
type Finder interface {
	// Find returns the nodes that satisfy a glob, sorted by path, branches before leaves.
	Find(ctx context.Context, q *names.Query, pattern string) ([]names.Match, error)
	// List calls emit with all names in order.
	List(ctx context.Context, q *names.Query, emit func(name []byte) error) error
	// Search returns the names that match words best, at most limit of them.
	Search(ctx context.Context, q *names.Query, words string, limit int) ([]names.Hit, error)
}

// finding is a request to /metrics/find.
type finding struct {
	pattern, base, format       string
	leavesOnly, wildcards, auto bool
	position                    int
}

func (h *Handler) finding(r *api.Request) (*finding, error) {
	f := &finding{pattern: param(r, "query"), format: param(r, "format")}
	if f.format == "" && !r.Form.Has("format") {
		f.format = "treejson"
	}
	set, err := flags(r, "leavesOnly", "local", "wildcards", "automatic_variants")
	if err != nil {
		return nil, err
	}
	f.leavesOnly, f.wildcards, f.auto = set["leavesOnly"], set["wildcards"], set["automatic_variants"]
	if f.position, err = whole(r, "position", -1); err != nil {
		return nil, err
	}
	switch {
	case !r.Form.Has("query"):
		return nil, badParameters("Missing required parameter 'query'")
	case f.pattern == "":
		return nil, badParameters("Required parameter 'query' is empty")
	}
	if i := strings.LastIndexByte(f.pattern, '.'); i >= 0 {
		f.base = f.pattern[:i+1]
	}
	if f.format == "completer" {
		f.complete()
	}
	return f, nil
}

// complete turns what a user has typed into a glob.
func (f *finding) complete() {
	f.pattern = strings.ReplaceAll(f.pattern, "..", "*.")
	if !strings.HasSuffix(f.pattern, "*") {
		f.pattern += "*"
	}
	if !f.auto {
		return
	}
	parts := strings.Split(f.pattern, ".")
	for i, p := range parts {
		if strings.Contains(p, ",") && !strings.Contains(p, "{") {
			parts[i] = "{" + p + "}"
		}
	}
	f.pattern = strings.Join(parts, ".")
}

// finders write the nodes that were found, by the parameter format.
var finders = map[string]func(h *Handler, r *api.Request, f *finding, found []names.Match) (*api.Response, error){
	"treejson":  (*Handler).tree,
	"nodelist":  (*Handler).nodes,
	"completer": (*Handler).completions,
	"json":      (*Handler).paths,
	"pickle":    (*Handler).pickledPaths,
	"msgpack":   (*Handler).packedPaths,
}

// find serves the nodes that satisfy a glob.
func (h *Handler) find(r *api.Request) (*api.Response, error) {
	f, err := h.finding(r)
	if err != nil {
		return nil, err
	}
	write := finders[f.format]
	if write == nil {
		return nil, badText("Invalid value for 'format' parameter")
	}
	q, err := h.query(r)
	if err != nil {
		return nil, err
	}
	q.LeavesOnly = f.leavesOnly
	found, err := h.o.Names.Find(r.Context(), q, f.pattern)
	if err != nil {
		return nil, err
	}
	res, err := write(h, r, f, found)
	return uncached(r, res, err)
}

// byNode sorts nodes by their last part, branches first.
func byNode(found []names.Match) {
	slices.SortStableFunc(found, func(a, b names.Match) int {
		switch c := cmp.Compare(a.Node(), b.Node()); {
		case c != 0 || a.Leaf == b.Leaf:
			return c
		case a.Leaf:
			return 1
		}
		return -1
	})
}

// tree writes what a tree of names shows: each node once by its last part, branches first.
func (h *Handler) tree(r *api.Request, f *finding, found []names.Match) (*api.Response, error) {
	byNode(found)
	branches := slices.ContainsFunc(found, func(m names.Match) bool { return !m.Leaf })
	return jsonText(r, func(b *api.Body) error {
		b.Raw("[")
		n := 0
		node := func(name string, leaf bool) {
			if n++; n > 1 {
				b.Raw(",")
			}
			b.Raw(`{"text":`)
			b.Str(unquote(name))
			b.Raw(`,"id":`)
			b.Str(f.base + name)
			if leaf {
				b.Raw(`,"allowChildren":0,"expandable":0,"leaf":1}`)
			} else {
				b.Raw(`,"allowChildren":1,"expandable":1,"leaf":0}`)
			}
			b.Spill()
		}
		if f.wildcards && len(found) > 1 {
			node("*", !branches)
		}
		for _, leaves := range []bool{false, true} {
			for i := range found {
				// Of the nodes with a name, the first one counts.
				if name := found[i].Node(); found[i].Leaf == leaves && (i == 0 || found[i-1].Node() != name) {
					node(name, leaves)
				}
			}
		}
		b.Raw("]")
		return nil
	})
}

// unquote decodes %XX and + in a name, as graphite-web shows it. What cannot be decoded stays.
func unquote(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			out = append(out, ' ')
		case s[i] == '%' && i+2 < len(s):
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				break
			}
			out = append(out, '%')
		default:
			out = append(out, s[i])
		}
	}
	return strings.ToValidUTF8(string(out), "\ufffd")
}

// nodes writes the parts at one position of the paths, each once.
func (h *Handler) nodes(r *api.Request, f *finding, found []names.Match) (*api.Response, error) {
	all := make([]string, 0, len(found))
	for i := range found {
		parts := strings.Split(found[i].Path, ".")
		at := f.position
		if at < 0 {
			at += len(parts)
		}
		if at < 0 || at >= len(parts) {
			return nil, badParameters("Invalid int value %d for param position: %q has %d nodes", f.position, found[i].Path, len(parts))
		}
		all = append(all, parts[at])
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return jsonText(r, func(b *api.Body) error {
		b.Raw(`{"nodes":`)
		b.Texts(all)
		b.Raw("}")
		return nil
	})
}

// completions writes what may complete a path.
func (h *Handler) completions(r *api.Request, f *finding, found []names.Match) (*api.Response, error) {
	byNode(found)
	return jsonText(r, func(b *api.Body) error {
		b.Raw(`{"metrics":[`)
		for i := range found {
			m := &found[i]
			if i > 0 {
				b.Raw(",")
			}
			path, leaf := m.Path+".", "0"
			if m.Leaf {
				path, leaf = m.Path, "1"
			}
			b.Raw(`{"path":`)
			b.Str(path)
			b.Raw(`,"name":`)
			b.Str(m.Node())
			b.Raw(`,"is_leaf":"` + leaf + `"}`)
			b.Spill()
		}
		if f.wildcards && len(found) > 1 {
			b.Raw(`,{"name":"*"}`)
		}
		b.Raw("]}")
		return nil
	})
}

// interval returns the time in which a name may have values, in Unix seconds.
func (h *Handler) interval(m *names.Match) (start, end int64) {
	now := h.o.Now().Unix()
	start, end = max(m.Range.Min, 0)/1e9, min(m.Range.Max/1e9+1, now)
	return min(start, end), end
}

// paths writes paths, for programs.
func (h *Handler) paths(r *api.Request, _ *finding, found []names.Match) (*api.Response, error) {
	return jsonText(r, func(b *api.Body) error {
		b.Raw("[")
		for i := range found {
			m := &found[i]
			if i > 0 {
				b.Raw(",")
			}
			b.Raw(`{"path":`)
			b.Str(m.Path)
			if m.Leaf {
				start, end := h.interval(m)
				b.Raw(`,"is_leaf":true,"intervals":[{"start":`)
				b.Buf = strconv.AppendInt(b.Buf, start, 10)
				b.Raw(`,"end":`)
				b.Buf = strconv.AppendInt(b.Buf, end, 10)
				b.Raw("}]}")
			} else {
				b.Raw(`,"is_leaf":false}`)
			}
			b.Spill()
		}
		b.Raw("]")
		return nil
	})
}
