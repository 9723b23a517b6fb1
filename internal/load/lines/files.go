package lines

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// FileLines are the lines of a file without their line feeds.
type FileLines struct{ lines [][]byte }

// maxLogFile bounds the memory that a file takes: all of it is kept.
const maxLogFile = 1 << 30

// FilesOf describes the files of a folder by name, without those of sub-folders. Its error is of class
// [model.ErrInvalid] or [model.ErrTransient].
func FilesOf(fs vfs.FS, dir string) (files []File, size int64, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: load: %w", model.ErrInvalid, err)
	}
	slices.Sort(names)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			return nil, 0, fmt.Errorf("%w: load: %w", model.ErrTransient, err)
		}
		if info.IsDir() {
			continue
		}
		lines, sum, err := readLines(fs, path)
		if err != nil {
			return nil, 0, err
		}
		if len(lines.lines) > 0 {
			files = append(files, File{Path: path, Lines: len(lines.lines), Sum: sum})
			size += info.Size()
		}
	}
	if len(files) == 0 {
		return nil, 0, fmt.Errorf("%w: load: %s has no file with lines", model.ErrInvalid, dir)
	}
	return files, size, nil
}

// readLines reads a file. Its last line need not end with a line feed; carriage returns belong to lines.
func readLines(fs vfs.FS, path string) (FileLines, uint32, error) {
	info, err := fs.Stat(path)
	if err != nil {
		return FileLines{}, 0, fmt.Errorf("%w: load: %w", model.ErrTransient, err)
	}
	if info.Size() > maxLogFile {
		return FileLines{}, 0, fmt.Errorf("%w: load: %s has %d bytes: want at most %d", model.ErrInvalid, path, info.Size(), maxLogFile)
	}
	f, err := fs.Open(path)
	if err != nil {
		return FileLines{}, 0, fmt.Errorf("%w: load: %w", model.ErrTransient, err)
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return FileLines{}, 0, fmt.Errorf("%w: load: %s: %w", model.ErrTransient, path, err)
	}
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	var out FileLines
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		out.lines = append(out.lines, line)
		data = rest
	}
	return out, sum, nil
}

// Open reads the files of a load, which must not have changed since it began.
func (l *Shape) Open(fs vfs.FS) ([]FileLines, error) {
	var all []FileLines
	for _, f := range l.Files {
		lines, sum, err := readLines(fs, f.Path)
		if err != nil {
			return nil, err
		}
		if sum != f.Sum || len(lines.lines) != f.Lines {
			return nil, fmt.Errorf("%w: load: %s has changed", model.ErrInvalid, f.Path)
		}
		all = append(all, lines)
	}
	return all, nil
}

// For sets the number of windows that push the files the given number of times.
func (l *Shape) For(times int) {
	most := 0
	for _, f := range l.Files {
		most = max(most, f.Lines)
	}
	l.Repeat, l.Windows = times, ceilDiv(most*times, l.Lines)
}

// pushFile writes the lines of a file that belong to a window. Shorter files end before longer ones.
func (w *Writer) pushFile(window, file int, sink Sink) {
	lines := w.Files[file].lines
	end := len(lines) * w.Repeat
	begun := false
	for j := range w.Lines {
		i := window*w.Lines + j
		if i >= end {
			return
		}
		if !begun {
			sink.Stream(file)
			begun = true
		}
		sink.Line(w.timeline.At(window)+int64(j)*(w.timeline.Step/int64(w.Lines)), lines[i%len(lines)], nil)
	}
}

// fileLabels are the labels of a file's stream.
func (l *Shape) fileLabels(file int) []Label {
	base := filepath.Base(l.Files[file].Path)
	app, _, _ := strings.Cut(strings.ToLower(base), ".")
	return []Label{{"app", app}, {"cluster", l.cluster()}, {"filename", base}, {"node", l.nodeName(file)}}
}
