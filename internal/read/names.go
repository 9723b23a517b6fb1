package read

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// NameSource is a source that lists the names of series without further labels, part by part.
type NameSource interface {
	// Names returns the sets of names of the parts that may hold rows of the request, which has no matchers.
	// They are pinned until release is called. On an error nothing stays pinned.
	Names(ctx context.Context, req *model.Request) (sets []model.NameSet, release func(), err error)
}

// Names returns the names of the series of a request that have no label but their name, as one set for each
// part of each source. A name may be in several sets. The caller calls release, also if there are no sets.
func (q *Querier) Names(ctx context.Context, req *model.Request) (sets []model.NameSet, release func(), err error) {
	var releases []func()
	release = func() {
		for _, f := range releases {
			f()
		}
	}
	r, ok := q.bound(req)
	if !ok {
		return nil, release, nil
	}
	for _, src := range q.o.Sources {
		n, ok := src.(NameSource)
		if !ok {
			release()
			return nil, nil, fmt.Errorf("%w: a source lists no names", model.ErrInvalid)
		}
		more, done, err := n.Names(ctx, &r)
		if err == nil {
			releases = append(releases, done)
			err = ctx.Err()
		}
		if err != nil {
			release()
			return nil, nil, fmt.Errorf("names: %w", err)
		}
		sets = append(sets, more...)
	}
	q.o.Warn(&r)
	return sets, release, nil
}
