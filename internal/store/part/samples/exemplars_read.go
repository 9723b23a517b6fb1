package samples

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/series"
)

// exemplarDir is a decoded page of exemplars.
type exemplarDir struct {
	rank0 uint32
	file.RankRows
	floats []uint64
	refs   []int64
	// sets holds the label sets, of which ends says where each ends.
	sets []byte
	ends []uint32

	ints   column.IntDecoder
	values column.ValueDecoder
	dir    series.LabelDir
}

func (d *exemplarDir) span() (rank0 uint32, ranks, rows int) {
	return d.rank0, len(d.Counts), len(d.Times)
}

func (d *exemplarDir) extent() (model.TimeRange, uint64, error) {
	times := file.NoTimes
	for _, t := range d.Times {
		times.Min, times.Max = min(times.Min, t), max(times.Max, t)
	}
	return times, uint64(len(d.Times)), nil
}

// decode reads the directory of a page.
func (d *exemplarDir) decode(payload []byte) error {
	const object = "page of exemplars"
	s := column.Scan{Rest: payload}
	if family, flags := s.Byte(), s.Byte(); family != byte(model.Exemplars) || flags != 0 {
		return column.Corrupt("%s: family %d with flags %x is unknown", object, family, flags)
	}
	d.rank0 = uint32(s.Below(1<<32 - 1))
	n, err := d.Read(&d.ints, &s, object, file.MaxPageRows)
	if err != nil {
		return err
	}
	segment := s.Bytes()
	d.refs = d.ints.Append(d.refs[:0], &s, n)
	if s.Bad {
		return s.Err(object)
	}
	if d.floats, err = d.values.Append(d.floats[:0], segment, n); err != nil {
		return err
	}
	if err := d.openSets(&s, n); err != nil {
		return err
	}
	if err := s.End(object); err != nil {
		return err
	}
	return d.checkRows()
}

// openSets decodes the label sets. That they are bounded together keeps a page of a few bytes from taking any
// memory.
func (d *exemplarDir) openSets(s *column.Scan, most int) error {
	d.sets, d.ends = d.sets[:0], d.ends[:0]
	n := s.Below(uint64(most))
	for i := range n {
		l, err := d.dir.Read(s, i == 0)
		if err != nil {
			return err
		}
		if len(d.sets)+len(l) > maxExemplarBytes {
			return column.Corrupt("page of exemplars: more than %d bytes of labels", maxExemplarBytes)
		}
		if err := l.Check(); err != nil {
			return fmt.Errorf("page of exemplars: %w", err)
		}
		d.sets = append(d.sets, l...)
		d.ends = append(d.ends, uint32(len(d.sets)))
	}
	return nil
}

func (d *exemplarDir) checkRows() error {
	size := 0
	for _, ref := range d.refs {
		if uint64(ref) >= uint64(len(d.ends)) {
			return column.Corrupt("page of exemplars: a row has labels that are not there")
		}
		if size += 8 + len(d.labels(ref)); size > maxExemplarBytes {
			return column.Corrupt("page of exemplars: more than %d bytes", maxExemplarBytes)
		}
	}
	return d.CheckTimes("page of exemplars")
}

func (d *exemplarDir) labels(ref int64) model.Labels {
	begin := uint32(0)
	if ref > 0 {
		begin = d.ends[ref-1]
	}
	return model.Labels(d.sets[begin:d.ends[ref]])
}

func (d *exemplarDir) has(i int, rg model.TimeRange) (bool, error) {
	return slices.ContainsFunc(d.TimesOf(i), rg.Contains), nil
}

func (d *exemplarDir) appendRows(i int, rg model.TimeRange, dst *model.Rows) error {
	begin := int(d.Begins[i])
	for k := begin; k < begin+int(d.Counts[i]); k++ {
		if !rg.Contains(d.Times[k]) {
			continue
		}
		at := len(dst.Bytes)
		dst.Bytes = binary.LittleEndian.AppendUint64(dst.Bytes, d.floats[k])
		dst.Bytes = append(dst.Bytes, d.labels(d.refs[k])...)
		if err := endBlob(dst, d.Times[k], model.KindExemplar, at, 0); err != nil {
			return err
		}
	}
	return nil
}

// endBlob adds a row whose value has been appended to the bytes from begin on.
func endBlob(dst *model.Rows, t int64, k model.Kind, begin int, start int64) error {
	if uint64(len(dst.Bytes)) > 1<<32-1 {
		// Rows has 32 bits for the place of a blob.
		dst.Bytes = dst.Bytes[:begin]
		return fmt.Errorf("%w: part: values of more than 4 GiB in one series", model.ErrLimit)
	}
	dst.EndBlob(t, k, begin, start)
	return nil
}
