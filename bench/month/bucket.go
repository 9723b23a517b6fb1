package month

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// Requests counts requests by how object stores bill them. Writes are PUT, the parts of large uploads, and
// conditional PUT.
type Requests struct {
	Writes, Reads, Lists, Deletes int64
	// BytesWritten and BytesRead are those of objects.
	BytesWritten, BytesRead int64
}

func (r Requests) add(o Requests, sign int64) Requests {
	return Requests{
		r.Writes + sign*o.Writes, r.Reads + sign*o.Reads, r.Lists + sign*o.Lists, r.Deletes + sign*o.Deletes,
		r.BytesWritten + sign*o.BytesWritten, r.BytesRead + sign*o.BytesRead,
	}
}

const (
	// partBytes is the size of the parts in which S3 clients upload large objects. Two more requests begin
	// and end such an upload.
	partBytes = 16 << 20
	// pageObjects is the number of objects in a response to a LIST.
	pageObjects = 1000
)

// store is a bucket that keeps the bytes of small objects and the stubs of blocks.
type store struct {
	mu      sync.Mutex
	folders map[string]map[string]object
	counts  map[string]Requests // by actor
	// actor is the part of the program that is at work.
	actor string
	// latency is the time of a request.
	latency time.Duration
	zeros   []byte
}

type object struct {
	size int64
	data []byte
	stub *stub
}

var _ bucket.Bucket = (*store)(nil)

func newStore() *store {
	return &store{folders: map[string]map[string]object{}, counts: map[string]Requests{}}
}

func folderOf(name string) string { return name[:strings.LastIndexByte(name, '/')+1] }

// count counts requests and waits as long as they take one after the other.
func (s *store) count(r Requests) {
	s.mu.Lock()
	s.counts[s.actor] = s.counts[s.actor].add(r, 1)
	s.mu.Unlock()
	if s.latency > 0 {
		time.Sleep(time.Duration(r.Writes+r.Reads+r.Lists+r.Deletes) * s.latency)
	}
}

func (s *store) put(name string, o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	folder := folderOf(name)
	if s.folders[folder] == nil {
		s.folders[folder] = map[string]object{}
	}
	s.folders[folder][name] = o
}

func (s *store) get(name string) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.folders[folderOf(name)][name]
	return o, ok
}

// Put creates an object: of the bytes of r, or of a stub.
func (s *store) Put(_ context.Context, name string, r io.Reader, size int64) error {
	parts := int64(1)
	if size > partBytes {
		parts = (size+partBytes-1)/partBytes + 2
	}
	s.count(Requests{Writes: parts, BytesWritten: size})
	if b, ok := r.(*stub); ok {
		s.put(name, object{size: size, stub: b})
		return nil
	}
	data, err := io.ReadAll(r)
	if err == nil && int64(len(data)) != size {
		err = fmt.Errorf("%w: %s: got %d bytes, expected %d", model.ErrInvalid, name, len(data), size)
	}
	if err != nil {
		return err
	}
	s.put(name, object{size: size, data: data})
	return nil
}

// PutIfAbsent creates an object unless the name is taken.
func (s *store) PutIfAbsent(_ context.Context, name string, data []byte) (bool, error) {
	s.count(Requests{Writes: 1, BytesWritten: int64(len(data))})
	if _, ok := s.get(name); ok {
		return false, nil
	}
	s.put(name, object{size: int64(len(data)), data: data})
	return true, nil
}

// Get returns a small object.
func (s *store) Get(_ context.Context, name string) ([]byte, error) {
	o, ok := s.get(name)
	s.count(Requests{Reads: 1, BytesRead: o.size})
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, bucket.ErrNotFound)
	}
	if o.stub != nil {
		return nil, fmt.Errorf("%w: %s has no bytes", model.ErrInvalid, name)
	}
	return append([]byte(nil), o.data...), nil
}

// GetRange counts a read of a block, and returns zeros that must not be changed.
func (s *store) GetRange(_ context.Context, name string, off, n int64) ([]byte, error) {
	o, ok := s.get(name)
	s.count(Requests{Reads: 1, BytesRead: n})
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, bucket.ErrNotFound)
	}
	if off+n > o.size {
		return nil, fmt.Errorf("%w: %s: range [%d, %d) of %d bytes", model.ErrInvalid, name, off, off+n, o.size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if int64(len(s.zeros)) < n {
		s.zeros = make([]byte, n)
	}
	return s.zeros[:n], nil
}

// List calls fn for every object whose name begins with prefix.
func (s *store) List(_ context.Context, prefix string, fn func(name string, size int64) error) error {
	sizes := map[string]int64{}
	s.mu.Lock()
	for folder, objects := range s.folders {
		if !strings.HasPrefix(folder, prefix) && !strings.HasPrefix(prefix, folder) {
			continue
		}
		for name, o := range objects {
			if strings.HasPrefix(name, prefix) {
				sizes[name] = o.size
			}
		}
	}
	s.mu.Unlock()
	s.count(Requests{Lists: max(1, (int64(len(sizes))+pageObjects-1)/pageObjects)})
	for name, size := range sizes {
		if err := fn(name, size); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes an object.
func (s *store) Delete(_ context.Context, name string) error {
	s.count(Requests{Deletes: 1})
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.folders[folderOf(name)], name)
	return nil
}

// objects returns the number of objects in a folder, and their bytes.
func (s *store) objects(folder string) (n int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.folders[folder] {
		n++
		bytes += o.size
	}
	return n, bytes
}

// spent returns what each actor has asked for so far.
func (s *store) spent() map[string]Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Requests, len(s.counts))
	for actor, r := range s.counts {
		all[actor] = r
	}
	return all
}
