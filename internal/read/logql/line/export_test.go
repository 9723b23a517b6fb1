package line

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// DropExtractor lets the stages run on every line.
func (r *Runner) DropExtractor() { r.extractor = nil }

func (r *Runner) HasExtractor() bool { return r.extractor != nil }

// LineKeys returns how many keys the extractor keeps.
func (r *Runner) LineKeys() int { return r.extractor.finder.Keys() }

// Extract is the part of Sample that the extractor does.
func (r *Runner) Extract(line []byte, metadata model.Labels, out *Sample) (keep, known bool) {
	return r.extractor.sample(r, line, metadata, out)
}

// Convert returns a value as a number.
func Convert(s string) (float64, error) { return convert(s, syntax.ConvertNumber) }
