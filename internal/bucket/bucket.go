package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// ErrNotFound says that there is no object of the name. It is not of any class of model: whether an object that is not
// there is a mishap is for the caller to say.
var ErrNotFound = errors.New("object not found")

// Bucket is an object store. It is safe for concurrent use.
//
// An object appears whole or not at all, and is durable when the call that made it returns nil. After an error of class
// transient a change may have happened or not; every change may be repeated. What one call made, every later call
// sees. Errors are of the classes of package model, or [ErrNotFound].
type Bucket interface {
	// Put makes an object of exactly size bytes of r, and replaces one that has the name.
	Put(ctx context.Context, name string, r io.Reader, size int64) error
	// PutIfAbsent makes an object unless there is one of the name, and reports which. Of several at one time exactly
	// one is told true.
	PutIfAbsent(ctx context.Context, name string, data []byte) (created bool, err error)
	// Get returns a whole object. The bytes are the caller's.
	Get(ctx context.Context, name string) ([]byte, error)
	// GetRange returns n bytes from off. A range that reaches past the end of the object is an error of class invalid,
	// never a short answer.
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
	// List calls fn with every object whose name begins with prefix, in any order. An error of fn ends the walk and is
	// returned.
	List(ctx context.Context, prefix string, fn func(name string, size int64) error) error
	// Delete removes an object. One that is not there is no error.
	Delete(ctx context.Context, name string) error
}

// maxNameBytes is what S3 and most file systems with a few levels of folders allow.
const maxNameBytes = 1024

// CheckName returns an error of class invalid unless the name may name an object: parts separated by single slashes,
// each of letters, digits and -_.=+, none beginning with a dot, of at most 255 bytes each and 1024 together.
func CheckName(name string) error {
	if name == "" || len(name) > maxNameBytes {
		return fmt.Errorf("%w: object name of %d bytes", model.ErrInvalid, len(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || len(part) > 255 {
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
