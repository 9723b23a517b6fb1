package whisperimport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/model"
)

// series is what one file becomes.
type series struct {
	path   string
	labels labels.Labels
	rows   *model.Rows
	// retentions are the steps and points of the archives.
	retentions string
	tally      Tally
}

// reader reads the files of a folder.
type reader struct {
	dir     string
	names   *Names
	dialect Dialect
	now     int64
}

// Count returns how many files a folder has.
func Count(ctx context.Context, dir string) (n int64, err error) {
	err = walk(ctx, dir, "", func(string) error { n++; return nil })
	return n, err
}

// walk calls fn with the path of each file below the folder, with slashes, in order. It leaves out those up
// to a path.
func walk(ctx context.Context, dir, until string, fn func(path string) error) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if e.IsDir() || !strings.HasSuffix(path, suffix) {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); until != "" && !before(until, rel) {
			return nil
		}
		return fn(rel)
	})
}

// each calls fn with what each file after a path becomes, in the order of the paths. Several goroutines read
// ahead of it.
func (r *reader) each(ctx context.Context, until string, workers int, fn func(*series) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	type place struct {
		path string
		done chan *series
	}
	places, order := make(chan place), make(chan place, workers)
	var running sync.WaitGroup
	var walked error
	running.Go(func() {
		defer close(order)
		defer close(places)
		walked = walk(ctx, r.dir, until, func(path string) error {
			p := place{path, make(chan *series, 1)}
			for _, to := range []chan place{order, places} {
				select {
				case to <- p:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	for range workers {
		running.Go(func() {
			for p := range places {
				p.done <- r.read(p.path)
			}
		})
	}
	defer func() {
		cancel()
		for range order { // the walk ends when it sees the context, and must not wait for its place
		}
		running.Wait()
		if err == nil {
			err = walked
		}
	}()
	for p := range order {
		select {
		case s := <-p.done:
			if err := fn(s); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// read reads one file. If that fails, the tally says why.
func (r *reader) read(path string) *series {
	s := &series{path: path}
	skip := func(err error) *series {
		why := err.Error()
		for _, class := range []error{model.ErrCorrupt, model.ErrInvalid} {
			why = strings.TrimPrefix(why, class.Error()+": ")
		}
		s.tally = Tally{Skipped: 1, SkippedList: []Skipped{{path, why}}}
		return s
	}
	name, err := r.names.Of(path)
	if err != nil {
		return skip(err)
	}
	data, err := readFile(filepath.Join(r.dir, filepath.FromSlash(path)))
	if err != nil {
		return skip(err)
	}
	f, err := decode(data, r.dialect, r.now)
	if err != nil {
		return skip(err)
	}
	rows, rollups := f.rows(r.now)
	s.labels, s.rows = labelsOf(name), rows
	var retentions []string
	for i := range f.archives {
		retentions = append(retentions, fmt.Sprintf("%ds:%d", f.archives[i].Step, f.archives[i].Points))
	}
	s.retentions = strings.Join(retentions, ",")
	s.tally = Tally{
		Files: 1, Bytes: int64(len(data)), Points: int64(rows.Len() - rollups), Rollups: int64(rollups),
		Future: f.future, Stale: f.stale, OtherMethods: int64(f.others),
	}
	if f.compressed {
		s.tally.Compressed = 1
	}
	if rows.Len() == 0 {
		s.tally.Files, s.tally.Empty = 0, 1
	}
	return s
}

// readFile reads a file of at most maxBytes.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	defer f.Close() // it was only read
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file")
	}
	if err == nil && info.Size() > maxBytes {
		err = fmt.Errorf("it has %d bytes: must have at most %d", info.Size(), int64(maxBytes))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	data := make([]byte, info.Size())
	n, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	return data[:n], nil
}
