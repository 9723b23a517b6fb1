package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// ErrNotFound says that no object has the name. It is of no class of package model: only the caller knows
// whether a missing object is a failure.
var ErrNotFound = errors.New("object not found")

// Bucket is an object store. It is safe for concurrent use.
//
// An object appears whole or not at all, and is durable when the call that created it returns nil. After an
// error of class transient a change may have happened or not; every change may be repeated. Every later call
// sees the effect of a call. Errors are of the classes of package model, or [ErrNotFound].
type Bucket interface {
	// Put creates an object of exactly size bytes of r. It replaces an object of the same name.
	Put(ctx context.Context, name string, r io.Reader, size int64) error
	// PutIfAbsent creates an object unless the name is taken, and reports whether it did. Of several
	// concurrent calls for a name, exactly one returns true.
	PutIfAbsent(ctx context.Context, name string, data []byte) (created bool, err error)
	// Get returns a whole object. The caller owns the bytes.
	Get(ctx context.Context, name string) ([]byte, error)
	// GetRange returns n bytes from off. A range that reaches past the end of the object is an error of class
	// invalid, never a short result.
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
	// List calls fn for every object whose name begins with prefix, in any order. It stops at the first error
	// of fn and returns it.
	List(ctx context.Context, prefix string, fn func(name string, size int64) error) error
	// Delete removes an object. A missing object is not an error.
	Delete(ctx context.Context, name string) error
}

// maxNameBytes is the limit of S3 and of most file systems with a few levels of folders.
const maxNameBytes = 1024

// CheckName returns an error of class invalid unless the name is allowed for an object. It has at most 1024
// bytes and consists of parts that are separated by single slashes. A part has at most 255 letters, digits
// and -_.=+. It neither begins nor ends with a dot: Azure drops dots at the end.
func CheckName(name string) error {
	if name == "" || len(name) > maxNameBytes {
		return fmt.Errorf("%w: object name of %d bytes", model.ErrInvalid, len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || part[len(part)-1] == '.' || len(part) > 255 {
			return fmt.Errorf("%w: object name %q", model.ErrInvalid, name)
		}
		for i := range len(part) {
			c := part[i]
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.=+", c) >= 0 {
				continue
			}
			return fmt.Errorf("%w: object name %q", model.ErrInvalid, name)
		}
	}
	return nil
}
