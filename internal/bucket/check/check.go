package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/bucket"
)

// Depth says how much a check does.
type Depth int

const (
	// Quick is for folders: the steps that say whether the file system can be written and has links.
	Quick Depth = iota
	// Usual takes about 40 small requests.
	Usual
	// Thorough also uploads and reads an object of 17 MiB, which stores get in parts.
	Thorough
)

// folder is where the objects of checks are.
const folder = "check/"

// Step is what one step of a check found out.
type Step struct {
	Name string        `json:"step"`
	Took time.Duration `json:"-"`
	// Err is nil if the store keeps this part of the contract.
	Err error `json:"-"`
}

// Failure says which step of a check failed.
type Failure struct {
	Step string
	Err  error
}

// Error names the step.
func (f *Failure) Error() string {
	return fmt.Sprintf("the bucket failed the step %q of its check: %v", f.Step, f.Err)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// check is a running check.
type check struct {
	b    bucket.Bucket
	base string // begins the names of its objects
}

type step struct {
	name  string
	depth Depth
	run   func(c *check, ctx context.Context) error
}

// steps returns the steps in order. The later ones rely on the earlier ones.
func steps() []step {
	return []step{
		{"put", Quick, (*check).put},
		{"get", Quick, (*check).get},
		{"range", Usual, (*check).ranges},
		{"list", Usual, (*check).list},
		{"create if absent", Quick, (*check).create},
		{"create in a race", Usual, (*check).race},
		{"overwrite", Quick, (*check).overwrite},
		{"upload in parts", Thorough, (*check).large},
		{"delete", Quick, (*check).remove},
		{"missing object", Quick, (*check).missing},
	}
}

// Run checks a bucket. It calls report, unless that is nil, after each step, and ends with the first failure,
// a [Failure]. It removes its objects, and those of checks that died an hour ago.
func Run(ctx context.Context, b bucket.Bucket, depth Depth, report func(Step)) error {
	c := &check{b: b, base: fmt.Sprintf("%s%020d-%s", folder, time.Now().UnixNano(), strings.ToLower(rand.Text()[:12]))}
	var failed error
	for _, s := range steps() {
		if s.depth > depth {
			continue
		}
		begin := time.Now()
		err := s.run(c, ctx)
		if report != nil {
			report(Step{Name: s.name, Took: time.Since(begin), Err: err})
		}
		if err != nil {
			failed = &Failure{Step: s.name, Err: err}
			break
		}
	}
	return errors.Join(failed, c.clean(ctx, failed != nil))
}

// cleanTime bounds the removal of the objects after a failure.
const cleanTime = 20 * time.Second

// clean removes the objects of the check, and those that a check has left when its process died. After a
// failure the removal is an attempt.
func (c *check) clean(ctx context.Context, failed bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	old := time.Now().Add(-time.Hour).UnixNano()
	var names []string
	err := c.b.List(ctx, folder, func(name string, _ int64) error {
		begun, _, _ := strings.Cut(strings.TrimPrefix(name, folder), "-")
		at, err := strconv.ParseInt(begun, 10, 64)
		if strings.HasPrefix(name, c.base) || err == nil && at < old {
			names = append(names, name)
		}
		return nil
	})
	for _, name := range names {
		err = errors.Join(err, c.b.Delete(ctx, name))
	}
	if err != nil && !failed {
		return &Failure{Step: "clean up", Err: err}
	}
	return nil
}
