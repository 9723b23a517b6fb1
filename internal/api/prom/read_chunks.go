package prom

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// readChunks returns a stream of frames. A frame is the length of its message as a varint, the CRC-32C of the
// message as 4 big-endian bytes, and a ChunkedReadResponse with chunks of one series. After the first bytes,
// an error cuts the connection, so that the client does not take a part for the whole.
func (h *Handler) readChunks(r *api.Request, queries []readQuery) *api.Response {
	return &api.Response{
		ContentType: "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse", Encoded: true,
		Write: func(b *api.Body) error {
			s := frameStream{out: b, maxBytes: h.o.MaxReadFrameBytes, crc: crc32.MakeTable(crc32.Castagnoli)}
			store := h.store(r)
			for i := range queries {
				s.query = int64(i)
				s.of = &queries[i]
				if err := queries[i].walk(r.Context(), store, true, s.series); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// frameStream writes frames.
type frameStream struct {
	out      *api.Body
	maxBytes int
	query    int64 // its index in the request
	of       *readQuery
	crc      *crc32.Table
	labels   []prompb.Label
	chunks   []prompb.Chunk
	message  []byte
	window   window
	iterator chunks.Iterator
}

// series writes a series in as many frames as it needs.
func (s *frameStream) series(series storage.Series) error {
	s.labels = prompb.FromLabels(series.Labels(), s.labels)
	room := s.maxBytes
	for i := range s.labels {
		room -= s.labels[i].Size()
	}
	left := room
	s.window = window{it: series.Iterator(s.window.it)}
	sent := false
	for !s.window.ended {
		s.window.left = windowSamples
		s.iterator = storage.NewSeriesToChunkEncoder(&s.window).Iterator(s.iterator)
		for s.iterator.Next() {
			c := s.iterator.At()
			s.chunks = append(s.chunks, prompb.Chunk{
				MinTimeMs: c.MinTime, MaxTimeMs: c.MaxTime, Type: prompb.Chunk_Encoding(c.Chunk.Encoding()), Data: c.Chunk.Bytes(),
			})
			if left -= s.chunks[len(s.chunks)-1].Size(); left <= 0 {
				if err := s.frame(); err != nil {
					return err
				}
				left, sent = room, true
			}
		}
		if err := s.iterator.Err(); err != nil {
			return err
		}
		if s.out.Broken {
			return fmt.Errorf("%w: the client left", model.ErrTransient)
		}
	}
	if len(s.chunks) == 0 && !sent && s.of.hints != nil && s.of.hints.Func == "series" {
		// The client asked for series without samples. It expects a chunk without samples for that.
		s.chunks = append(s.chunks, prompb.Chunk{
			MinTimeMs: s.of.start, MaxTimeMs: s.of.end, Type: prompb.Chunk_XOR, Data: chunkenc.NewXORChunk().Bytes(),
		})
	}
	return s.frame()
}

// frame writes the gathered chunks, if there are any.
func (s *frameStream) frame() error {
	if len(s.chunks) == 0 {
		return nil
	}
	response := prompb.ChunkedReadResponse{
		ChunkedSeries: []*prompb.ChunkedSeries{{Labels: s.labels, Chunks: s.chunks}}, QueryIndex: s.query,
	}
	n := response.Size()
	if cap(s.message) < n {
		s.message = make([]byte, n)
	}
	n, err := response.MarshalTo(s.message[:n])
	if err != nil {
		return fmt.Errorf("%w: encoding a frame: %w", model.ErrCorrupt, err)
	}
	message := s.message[:n]
	s.out.Buf = binary.AppendUvarint(s.out.Buf, uint64(n))
	s.out.Buf = binary.BigEndian.AppendUint32(s.out.Buf, crc32.Checksum(message, s.crc))
	s.out.Buf = append(s.out.Buf, message...)
	s.out.Spill()
	s.chunks = s.chunks[:0]
	return nil
}

// windowSamples is the number of samples of a series that are encoded at a time: a multiple of the 120 of a
// chunk.
const windowSamples = 32 * 120

// window shows a part of a series at a time, so that not all of its chunks are in memory at once. It hides
// start timestamps: older clients cannot decode the chunk encodings that have them.
type window struct {
	storage.Series // has no labels; the encoder asks for none
	it             chunkenc.Iterator
	left           int
	ended          bool
}

func (w *window) Iterator(chunkenc.Iterator) chunkenc.Iterator { return windowIterator{w.it, w} }

type windowIterator struct {
	chunkenc.Iterator
	w *window
}

func (i windowIterator) Next() chunkenc.ValueType {
	if i.w.left == 0 {
		return chunkenc.ValNone
	}
	i.w.left--
	kind := i.Iterator.Next()
	i.w.ended = kind == chunkenc.ValNone
	return kind
}

func (windowIterator) AtST() int64 { return 0 }
