package model

import (
	"context"
	"slices"
	"sort"
)

// NameSet is the names of the series of one part that have no label but their name. It is used by one
// goroutine, and only until its query is over.
type NameSet interface {
	// Range bounds the times of the series.
	Range() TimeRange
	// Walk returns a walk over the names in the order of their bytes; nil: they come in no order.
	Walk(ctx context.Context) NameWalk
	// Each calls emit with each name once, in the order of Walk. The bytes are valid during the call. An
	// error of emit ends the walk and is returned.
	Each(ctx context.Context, emit func(name []byte) error) error
	// Made returns what make has returned for the set, now or in an earlier query, which must not be changed.
	// With a nil make it returns what it has, or nil.
	Made(ctx context.Context, make func(ctx context.Context) ([]byte, error)) ([]byte, error)
}

// NameWalk walks names in ascending order, each once. Before the first Seek it stands on no name.
type NameWalk interface {
	// Seek moves to the first name that is not less than from, and Next to the following one. They return
	// false at the end and on an error.
	Seek(from []byte) bool
	Next() bool
	// Name is valid until the walk moves.
	Name() []byte
	Err() error
}

// NameList is a set of names in memory, which are listed series by series.
type NameList struct {
	// Times bound the times of the series.
	Times TimeRange
	// Sorted says that the names are in order, each once.
	Sorted bool
	all    []string
}

// Add adds the name of a series, unless it has other labels, and returns the memory that the list takes for
// it.
func (n *NameList) Add(l Labels) (bytes int64) {
	name := l.LoneName()
	if name == nil {
		return 0
	}
	return n.AddName(name)
}

// AddName is Add for a name.
func (n *NameList) AddName(name []byte) (bytes int64) {
	n.all = append(n.all, string(name))
	return int64(len(name)) + 32
}

// Sort brings the names in order.
func (n *NameList) Sort() {
	slices.Sort(n.all)
	n.all = slices.Compact(n.all)
	n.Sorted = true
}

// Range is [NameSet.Range].
func (n *NameList) Range() TimeRange { return n.Times }

// Walk is [NameSet.Walk].
func (n *NameList) Walk(context.Context) NameWalk {
	if !n.Sorted {
		return nil
	}
	return &nameListWalk{all: n.all, at: -1}
}

// Each is [NameSet.Each].
func (n *NameList) Each(_ context.Context, emit func(name []byte) error) error {
	var b []byte
	for _, name := range n.all {
		b = append(b[:0], name...)
		if err := emit(b); err != nil {
			return err
		}
	}
	return nil
}

// Made is [NameSet.Made]: the list keeps nothing.
func (n *NameList) Made(ctx context.Context, make func(context.Context) ([]byte, error)) ([]byte, error) {
	if make == nil {
		return nil, nil
	}
	return make(ctx)
}

type nameListWalk struct {
	all []string
	at  int
}

func (w *nameListWalk) Seek(from []byte) bool {
	w.at = sort.Search(len(w.all), func(i int) bool { return w.all[i] >= string(from) }) - 1
	return w.Next()
}

func (w *nameListWalk) Next() bool {
	w.at = min(w.at+1, len(w.all))
	return w.at < len(w.all)
}

func (w *nameListWalk) Name() []byte { return []byte(w.all[w.at]) }

func (w *nameListWalk) Err() error { return nil }
