package graphite

import (
	"errors"
	"net/http"
	"slices"

	"github.com/shaledb/shale/internal/api"
)

func badText(text string) *api.Error { return failed(http.StatusBadRequest, errors.New(text)) }

// expand serves the paths that satisfy globs.
func (h *Handler) expand(r *api.Request) (*api.Response, error) {
	set, err := flags(r, "local", "groupByExpr", "leavesOnly")
	if err != nil {
		return nil, err
	}
	globs, err := list(r, "query")
	if err != nil {
		return nil, err
	}
	q, err := h.query(r)
	if err != nil {
		return nil, err
	}
	q.LeavesOnly = set["leavesOnly"]
	groups := make(map[string][]string, len(globs))
	var all []string
	for _, g := range globs {
		if _, known := groups[g]; known {
			continue
		}
		found, err := h.o.Names.Find(r.Context(), q, g)
		if err != nil {
			return nil, err
		}
		paths := make([]string, 0, len(found))
		for i := range found {
			paths = append(paths, found[i].Path)
		}
		groups[g] = slices.Compact(paths) // a branch and a leaf
		all = append(all, groups[g]...)
	}
	res, err := jsonText(r, func(b *api.Body) error {
		b.Raw(`{"results":`)
		if set["groupByExpr"] {
			h.writeGroups(b, globs, groups)
		} else {
			slices.Sort(all)
			b.Texts(slices.Compact(all))
		}
		b.Raw("}")
		return nil
	})
	return uncached(r, res, err)
}

func (h *Handler) writeGroups(b *api.Body, globs []string, groups map[string][]string) {
	b.Raw("{")
	n := 0
	for _, g := range globs {
		paths, ok := groups[g]
		if !ok {
			continue
		}
		delete(groups, g)
		if n++; n > 1 {
			b.Raw(",")
		}
		b.Str(g)
		b.Raw(":")
		b.Texts(paths)
	}
	b.Raw("}")
}

// index serves all names. They are sent as they are read, whatever their number.
func (h *Handler) index(r *api.Request) (*api.Response, error) {
	if _, err := flags(r, "local"); err != nil {
		return nil, err
	}
	q, err := h.query(r)
	if err != nil {
		return nil, err
	}
	return jsonText(r, func(b *api.Body) error {
		b.Raw("[")
		n := 0
		err := h.o.Names.List(r.Context(), q, func(name []byte) error {
			if n++; n > 1 {
				b.Raw(",")
			}
			b.StrBytes(name)
			b.Spill()
			return nil
		})
		b.Raw("]")
		return err
	})
}

// The results of a search without a limit, and the most that a limit may be.
const (
	defaultHits = 100
	maxHits     = 10_000
)

// search serves the names that match words best.
func (h *Handler) search(r *api.Request) (*api.Response, error) {
	limit, err := whole(r, "limit", defaultHits)
	switch {
	case err != nil:
		return nil, err
	case limit < 1 || limit > maxHits:
		return nil, badParameters("limit must be between 1 and %d, not %d", maxHits, limit)
	case param(r, "query") == "":
		return nil, badParameters("Missing required parameter 'query'")
	}
	q, err := h.query(r)
	if err != nil {
		return nil, err
	}
	hits, err := h.o.Names.Search(r.Context(), q, param(r, "query"), limit)
	if err != nil {
		return nil, err
	}
	return jsonText(r, func(b *api.Body) error {
		b.Raw(`{"results":[`)
		for i := range hits {
			if i > 0 {
				b.Raw(",")
			}
			b.Str(hits[i].Name)
			b.Spill()
		}
		b.Raw("]}")
		return nil
	})
}
