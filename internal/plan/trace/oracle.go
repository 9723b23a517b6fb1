package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/shaledb/shale/internal/model"
)

// oracleRecord is the length of a record of the oracleGeneral format: the time in seconds (4 bytes), the key
// (8), the size (4) and the index of the next request for the key (8), little-endian.
const oracleRecord = 24

// ReadOracle reads a trace in the oracleGeneral format, uncompressed. Each request is a query of its own. The
// indexes of next requests are not used, since a sample of keys would make them wrong.
func ReadOracle(name string, r io.Reader, l Limits) (*Trace, error) {
	b := newBuilder(name, l)
	in := bufio.NewReaderSize(r, 1<<20)
	var rec [oracleRecord]byte
	for n := uint32(0); ; n++ {
		got, err := io.ReadFull(in, rec[:])
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%w: %s: record %d is truncated: %d of %d bytes", model.ErrInvalid, name, n, got, oracleRecord)
		}
		if err != nil {
			return nil, err
		}
		at := int64(binary.LittleEndian.Uint32(rec[:])) * 1000
		if err := b.add(at, binary.LittleEndian.Uint64(rec[4:]), binary.LittleEndian.Uint32(rec[12:]), n, UnknownAge, false); err != nil {
			return nil, fmt.Errorf("%s, record %d: %w", name, n, err)
		}
	}
	return b.finish()
}
