package logs

import (
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// streamShards is how many locks the streams have.
const streamShards = 16

// StreamCacheBytes is the memory for streams that were seen lately: of some 10,000 of usual length.
const StreamCacheBytes = 8 << 20

// Streams makes streams of label sets as they are spelled on the wire. It remembers those that it has seen lately, so that
// nothing is parsed for a stream that goes on. It is safe for concurrent use.
type Streams struct {
	rules  Rules
	seed   model.KeySeed
	shards [streamShards]streamShard
	most   int // bytes of one generation of a shard
}

// streamShard has two generations: when the young one is full it becomes the old one, and what was in the old one and has
// not been asked for since is forgotten.
type streamShard struct {
	mu         sync.RWMutex
	young, old map[string]*Stream
	bytes      int
}

// NewStreams returns one that holds about so many bytes.
func NewStreams(rules Rules, seed model.KeySeed, maxBytes int) *Streams {
	s := &Streams{rules: rules, seed: seed, most: maxBytes / streamShards / 2}
	for i := range s.shards {
		s.shards[i].young = make(map[string]*Stream)
	}
	return s
}

// Rules returns the rules of the streams.
func (s *Streams) Rules() *Rules { return &s.rules }

// Text returns the stream of labels that are written as {a="b"}.
func (s *Streams) Text(text []byte) *Stream {
	return s.Spelled(text, ParseLabels)
}

// Spelled returns the stream that is spelled so. If it is not known, read adds its labels to a builder; its error becomes
// that of the stream. All spellings of one Streams must be of one kind, so that none can stand for two things.
func (s *Streams) Spelled(spelling []byte, read func(spelling []byte, lb *model.LabelsBuilder) error) *Stream {
	shard := &s.shards[xxh3.Hash(spelling)%streamShards]
	shard.mu.RLock()
	st, young := shard.young[string(spelling)], true
	if st == nil {
		st, young = shard.old[string(spelling)], false
	}
	shard.mu.RUnlock()
	if st == nil {
		st = s.read(spelling, read)
	}
	if !young {
		s.remember(shard, spelling, st)
	}
	return st
}

func (s *Streams) read(spelling []byte, read func(spelling []byte, lb *model.LabelsBuilder) error) *Stream {
	if len(spelling) > model.MaxLabelBytes {
		return &Stream{Reason: write.ReasonLabelsTooLong, Why: "the labels of a stream are too long: " + cut(spelling)}
	}
	var lb model.LabelsBuilder
	if err := read(spelling, &lb); err != nil {
		return Misspelled(err)
	}
	return s.rules.newStream(&lb, s.seed)
}

// Misspelled returns the stream of labels that could not be read.
func Misspelled(err error) *Stream {
	why := strings.TrimPrefix(err.Error(), model.ErrInvalid.Error()+": ")
	return &Stream{Reason: write.ReasonLabels, Why: why, Err: err}
}

// remember puts a stream into the young generation.
func (s *Streams) remember(shard *streamShard, spelling []byte, st *Stream) {
	const overhead = 200 // of two map slots, the stream and its key
	size := len(spelling) + len(st.Labels) + len(st.Why) + overhead
	if size > s.most {
		return
	}
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.bytes += size; shard.bytes > s.most {
		shard.old, shard.young, shard.bytes = shard.young, make(map[string]*Stream), size
	}
	shard.young[string(spelling)] = st
}
