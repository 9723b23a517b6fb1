package fault

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Kind says how a request fails.
type Kind uint8

const (
	// Fail does nothing and returns an error of class transient.
	Fail Kind = iota
	// LostAck carries out the request and then returns an error of class transient.
	LostAck
	// Slow waits for Delay, or until the context is done, before it carries out the request.
	Slow
	// Partial carries out half of the request. Put reads half of its reader, creates nothing and returns an
	// error of class transient. List calls back for half of the objects and returns such an error. Get and
	// GetRange break the contract: they return half of the bytes and no error.
	Partial
)

// Op names an operation.
type Op string

// The operations. AnyOp matches all of them.
const (
	AnyOp       Op = ""
	Put         Op = "put"
	PutIfAbsent Op = "put if absent"
	Get         Op = "get"
	GetRange    Op = "get range"
	List        Op = "list"
	Delete      Op = "delete"
)

// Rule says which requests fail.
type Rule struct {
	Kind Kind
	Op   Op
	// Prefix is a prefix of the name of the object or, for List, of its prefix.
	Prefix string
	// Skip is the number of requests that pass first. Times is the number of failures that end the rule; 0:
	// it never ends.
	Skip, Times int
	Delay       time.Duration
}

// Bucket is a bucket with faults. It is safe for concurrent use.
type Bucket struct {
	next bucket.Bucket

	mu    sync.Mutex
	rules []*Rule
	hits  int
}

var _ bucket.Bucket = (*Bucket)(nil)

// New wraps a bucket, without any rules.
func New(next bucket.Bucket, rules ...Rule) *Bucket {
	b := &Bucket{next: next}
	for _, r := range rules {
		b.Add(r)
	}
	return b
}

// Add adds a rule. If several match, the oldest applies.
func (b *Bucket) Add(r Rule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rules = append(b.rules, &r)
}

// Clear removes all rules.
func (b *Bucket) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rules = nil
}

// Hits returns the number of requests that failed.
func (b *Bucket) Hits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hits
}

// rule returns the rule that applies to a request, or nil.
func (b *Bucket) rule(op Op, name string) *Rule {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, r := range b.rules {
		if r.Op != AnyOp && r.Op != op || !strings.HasPrefix(name, r.Prefix) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		found := *r
		if r.Times > 0 {
			if r.Times--; r.Times == 0 {
				b.rules = append(b.rules[:i:i], b.rules[i+1:]...)
			}
		}
		b.hits++
		return &found
	}
	return nil
}

func injected(op Op, name string) error {
	return fmt.Errorf("bucket: %s %s: %w: injected fault", op, name, model.ErrTransient)
}

// run applies the faults that are the same for all operations. partial carries out half of the request.
func (b *Bucket) run(ctx context.Context, op Op, name string, do, partial func() error) error {
	r := b.rule(op, name)
	if r == nil {
		return do()
	}
	switch r.Kind {
	case Slow:
		select {
		case <-time.After(r.Delay):
			return do()
		case <-ctx.Done():
			return fmt.Errorf("bucket: %s %s: %w: %w", op, name, model.ErrTransient, ctx.Err())
		}
	case LostAck:
		if err := do(); err != nil {
			return err
		}
	case Partial:
		return partial()
	}
	return injected(op, name)
}

// Put creates or replaces an object.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, size int64) error {
	return b.run(ctx, Put, name, func() error { return b.next.Put(ctx, name, r, size) }, func() error {
		if _, err := io.CopyN(io.Discard, r, size/2); err != nil {
			return err
		}
		return injected(Put, name)
	})
}

// PutIfAbsent creates an object unless the name is taken.
func (b *Bucket) PutIfAbsent(ctx context.Context, name string, data []byte) (created bool, err error) {
	err = b.run(ctx, PutIfAbsent, name, func() error {
		created, err = b.next.PutIfAbsent(ctx, name, data)
		return err
	}, func() error { return injected(PutIfAbsent, name) })
	return created && err == nil, err
}

// Get returns a whole object.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	return b.read(ctx, Get, name, func() ([]byte, error) { return b.next.Get(ctx, name) })
}

// GetRange returns n bytes of an object from off.
func (b *Bucket) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	return b.read(ctx, GetRange, name, func() ([]byte, error) { return b.next.GetRange(ctx, name, off, n) })
}

func (b *Bucket) read(ctx context.Context, op Op, name string, do func() ([]byte, error)) (data []byte, err error) {
	whole := func() error {
		data, err = do()
		return err
	}
	err = b.run(ctx, op, name, whole, func() error {
		if err := whole(); err != nil {
			return err
		}
		data = bytes.Clone(data[:len(data)/2])
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// List calls fn for every object whose name begins with prefix.
func (b *Bucket) List(ctx context.Context, prefix string, fn func(name string, size int64) error) error {
	return b.run(ctx, List, prefix, func() error { return b.next.List(ctx, prefix, fn) }, func() error {
		n := 0
		if err := b.next.List(ctx, prefix, func(string, int64) error { n++; return nil }); err != nil {
			return err
		}
		i := 0
		if err := b.next.List(ctx, prefix, func(name string, size int64) error {
			if i++; i > n/2 {
				return nil
			}
			return fn(name, size)
		}); err != nil {
			return err
		}
		return injected(List, prefix)
	})
}

// Delete removes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	return b.run(ctx, Delete, name, func() error { return b.next.Delete(ctx, name) },
		func() error { return injected(Delete, name) })
}
