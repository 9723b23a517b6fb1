package patterns

import (
	"github.com/shaledb/shale/internal/model"
)

// Sample mines lines that are read for one result. It is used by one goroutine, and its batches by others.
type Sample struct {
	cut   *Cutter
	quota *model.Quota
	byLevel
}

// NewSample returns a Sample, whose memory is charged to the quota and stays charged.
func NewSample(quota *model.Quota) *Sample { return &Sample{cut: NewCutter(), quota: quota} }

// Batch is lines of a sample that were cut into words, which takes longer than to mine them. It is used by
// one goroutine at a time.
type Batch struct {
	cutter tokens
	quota  *model.Quota
	text   []byte
	spans  []span
	words  []uint64
	lines  []batchLine
	bytes  int64 // charged
}

// batchLine is a line that was cut. Its text and its words end at these indexes.
type batchLine struct {
	text, words int
	structure   uint64
	begin       uint32
	lines       float32
	level       uint8
	open        bool
}

// batchLineBytes is the size of a batchLine, and wordBytes that of a word with its span.
const (
	batchLineBytes = 40
	wordBytes      = 12
)

// NewBatch returns a Batch without lines.
func (s *Sample) NewBatch() *Batch {
	return &Batch{cutter: tokens{seed: s.cut.tokens.seed}, quota: s.quota}
}

// Reset takes all lines out of the batch. The batch keeps its memory.
func (b *Batch) Reset() {
	b.text, b.spans, b.words, b.lines = b.text[:0], b.spans[:0], b.words[:0], b.lines[:0]
}

// Release gives the memory of the batch back to the quota.
func (b *Batch) Release() {
	_ = b.quota.TakeBytes(-b.bytes) // giving back does not fail
	*b = Batch{}
}

// Add adds a line that stands for a number of lines around its time, which is in Unix nanoseconds.
func (b *Batch) Add(line []byte, metadata model.Labels, time int64, lines float64) error {
	t := &b.cutter
	t.cut(line)
	b.text, b.spans, b.words = append(b.text, t.text...), append(b.spans, t.spans...), append(b.words, t.words...)
	seconds := time / 1e9
	b.lines = append(b.lines, batchLine{
		text: len(b.text), words: len(b.words), structure: t.structure, begin: uint32(seconds - seconds%fine), lines: float32(lines),
		level: levelOf(metadata), open: t.open,
	})
	taken := int64(cap(b.text)) + wordBytes*int64(cap(b.words)) + batchLineBytes*int64(cap(b.lines))
	if taken == b.bytes {
		return nil
	}
	if err := b.quota.TakeBytes(taken - b.bytes); err != nil {
		return err
	}
	b.bytes = taken
	return nil
}

// Add mines the lines of a batch, in their order.
func (s *Sample) Add(b *Batch) error {
	text, words, grown := 0, 0, int64(0)
	for i := range b.lines {
		l := &b.lines[i]
		m, before := s.miner(l.level)
		m.add(&tokens{text: b.text[text:l.text], open: l.open, spans: b.spans[words:l.words], words: b.words[words:l.words], structure: l.structure}, l.begin, l.lines)
		grown += m.bytes - before
		text, words = l.text, l.words
	}
	return s.quota.TakeBytes(grown)
}

// AddTo adds the patterns of the sample.
func (s *Sample) AddTo(to *Totals) error { return s.addTo(to, 0, 0) }
