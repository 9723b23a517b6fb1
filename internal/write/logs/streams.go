package logs

import (
	"fmt"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// streamShards is the number of shards, each with its own lock.
const streamShards = 16

// StreamCacheBytes is the memory for recently seen streams, enough for about 10,000 of usual length.
const StreamCacheBytes = 8 << 20

// Streams turns label sets, as spelled on the wire, into streams. It caches recent ones, so that the
// labels of a continuing stream are not parsed again. It is safe for concurrent use.
type Streams struct {
	seed   model.KeySeed
	shards [streamShards]streamShard
	most   int // bytes of one generation of one shard
}

// streamShard has two generations. When the young one is full, it becomes the old one, and all streams
// of the old one that have not been used since are dropped.
type streamShard struct {
	mu         sync.RWMutex
	young, old map[string]*Stream
	bytes      int
}

// NewStreams returns a Streams that uses about maxBytes for its cache.
func NewStreams(seed model.KeySeed, maxBytes int) *Streams {
	s := &Streams{seed: seed, most: maxBytes / streamShards / 2}
	for i := range s.shards {
		s.shards[i].young = make(map[string]*Stream)
	}
	return s
}

// GetText returns the stream whose labels have the form {a="b"}.
func (s *Streams) GetText(rules *Rules, text []byte) *Stream {
	return s.Get(rules, text, ParseLabels)
}

// Get returns the stream for a spelling of labels under the rules of a tenant. If the stream is not cached,
// read parses the spelling; its error becomes that of the stream. All spellings passed to one Streams must
// have the same syntax, so that each has one meaning.
func (s *Streams) Get(rules *Rules, spelling []byte, read func(spelling []byte, lb *model.LabelsBuilder) error) *Stream {
	shard := &s.shards[xxh3.Hash(spelling)%streamShards]
	shard.mu.RLock()
	st, young := shard.young[string(spelling)], true
	if st == nil {
		st, young = shard.old[string(spelling)], false
	}
	shard.mu.RUnlock()
	// Tenants whose limits differ take turns with a stream that they share, which is rare.
	if st == nil || st.judged != rules.LabelLimits {
		st, young = s.parse(rules, spelling, read), false
	}
	if !young {
		s.cache(shard, spelling, st)
	}
	return st
}

func (s *Streams) parse(rules *Rules, spelling []byte, read func(spelling []byte, lb *model.LabelsBuilder) error) *Stream {
	st := s.judge(rules, spelling, read)
	st.judged = rules.LabelLimits
	return st
}

func (s *Streams) judge(rules *Rules, spelling []byte, read func(spelling []byte, lb *model.LabelsBuilder) error) *Stream {
	if len(spelling) > model.MaxLabelBytes {
		return &Stream{Reason: write.ReasonLabelsTooLong, Why: fmt.Sprintf("the labels of the stream exceed %d bytes: %s", model.MaxLabelBytes, cut(spelling))}
	}
	var lb model.LabelsBuilder
	if err := read(spelling, &lb); err != nil {
		return InvalidStream(err)
	}
	return rules.newStream(&lb, s.seed)
}

// InvalidStream returns the stream for labels that cannot be parsed.
func InvalidStream(err error) *Stream {
	why := strings.TrimPrefix(err.Error(), model.ErrInvalid.Error()+": ")
	return &Stream{Reason: write.ReasonLabels, Why: why, Err: err}
}

// cache puts a stream into the young generation.
func (s *Streams) cache(shard *streamShard, spelling []byte, st *Stream) {
	const overhead = 200 // two map entries, the stream and its key
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
