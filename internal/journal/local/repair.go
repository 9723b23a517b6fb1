package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
)

// maxFill bounds the records that a repair replaces by empty ones at one place.
const maxFill = 1 << 22

// Repairs returns the repairs of a journal that is not being written: each damaged segment is replaced by one
// with its good records, and with an empty record for each one that is lost, so that sequence numbers have no
// gap. root is the data folder and dir the journal in it; parts hold the records up to covered.
func Repairs(ctx context.Context, fs vfs.FS, root, dir string, seed model.KeySeed, covered uint64) ([]repair.Step, error) {
	d := folder{fs: fs, path: fs.PathJoin(root, dir)}
	segs, err := d.survey()
	if err != nil {
		return nil, err
	}
	for _, s := range segs {
		if s.damaged != nil {
			s.seed = seed
		}
	}
	var steps []repair.Step
	for i, s := range segs {
		v, err := d.salvage(ctx, s, i == len(segs)-1)
		if err != nil {
			return nil, err
		}
		if len(v.damage) > 0 {
			steps = append(steps, d.replaceStep(root, dir, s, v, covered))
		}
	}
	if len(segs) > 0 && covered > 0 && segs[0].first > covered+1 {
		steps = append(steps, d.fillStep(root, dir, segs[0], covered))
	}
	return steps, nil
}

// FirstRecord returns the sequence number with which a journal begins, or 0 if it has no segments.
func FirstRecord(fs vfs.FS, dir string) (uint64, error) {
	segs, err := folder{fs: fs, path: dir}.survey()
	if errors.Is(err, os.ErrNotExist) || err == nil && len(segs) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return segs[0].first, nil
}

// salvaged is what can be read of a segment.
type salvaged struct {
	frames  []byte // of all records, empty ones in place of those that are lost
	damage  []Damage
	written bool // the disk, and not a crash, has damaged the end of the newest segment
}

func (d folder) salvage(ctx context.Context, s *segment, newest bool) (*salvaged, error) {
	v := new(salvaged)
	if s.damaged != nil {
		at := Damage{File: d.file(s.name), Bytes: min(s.size, segmentHeader), First: s.first, Last: s.first - 1, Why: s.damaged}
		// A crash never leaves a segment without a header, so its end cannot be torn by one.
		v.written = newest
		at.End = newest && s.size < segmentHeader
		v.damage = append(v.damage, at)
	}
	r, err := d.read(s)
	if err != nil {
		return nil, err
	}
	defer r.close()
	last := s.last
	if newest {
		last = min(s.first+uint64(s.size)/frameHeader, math.MaxInt64)
	}
	var b model.Batch
	for r.seq <= last {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		off, seq := r.off, r.seq
		err := r.next()
		if err == nil {
			if err = journal.DecodeBatch(r.record, &b); err == nil {
				v.append(r.record, seq, r.frame.unsynced)
				continue
			}
			v.damage = append(v.damage, Damage{File: r.path, Offset: off, Bytes: r.off - off, First: seq, Last: seq, Why: err})
			v.fill(seq, seq)
			continue
		}
		if !errors.Is(err, errEnd) {
			return nil, err
		}
		if newest && r.off >= r.size {
			break
		}
		found, skipErr := r.skip(last)
		if skipErr != nil {
			return nil, skipErr
		}
		at := Damage{File: r.path, Offset: off, Bytes: r.off - off, First: seq, Last: r.seq - 1, Why: err}
		switch {
		case !found && newest:
			at.Bytes, at.Last, at.End = r.size-off, last, true
			v.damage = append(v.damage, at)
			v.written = v.written || r.wholeRecord()
			return v, nil
		case !found:
			at.Bytes, at.Last = max(r.size-off, 0), last
			r.seq = last + 1
		}
		if at.Last-at.First >= maxFill {
			return nil, fmt.Errorf("journal %s: offset %d: %w: %d records are missing, and a repair replaces at most %d", r.path, off, model.ErrCorrupt, at.Last-at.First+1, maxFill)
		}
		v.damage = append(v.damage, at)
		v.fill(at.First, at.Last)
	}
	return v, nil
}

func (v *salvaged) append(record []byte, seq uint64, unsynced uint32) {
	at := len(v.frames)
	v.frames = append(append(v.frames, emptyFrame[:]...), record...)
	putRecordSum(v.frames[at:])
	putFrame(v.frames[at:], seq, int(unsynced))
}

// fill appends empty records.
func (v *salvaged) fill(first, last uint64) {
	empty := journal.EncodeBatch(nil, &model.Batch{Tenant: model.DefaultTenant, Signal: model.Metrics})
	for seq := first; seq <= last; seq++ {
		v.append(empty, seq, 0)
	}
}

// wholeRecord reports whether the file has all bytes of a frame at the reader's offset. A crash during a
// write leaves fewer bytes, or zeros.
func (r *reader) wholeRecord() bool {
	var head [frameHeader]byte
	if _, err := r.file.ReadAt(head[:], r.off); err != nil {
		return false
	}
	f, ok := parseFrame(head[:])
	if !ok || f.seq != r.seq || int64(f.length) > r.size-r.off-frameHeader {
		return false
	}
	end := make([]byte, min(int64(f.length), 512))
	_, err := r.file.ReadAt(end, r.off+frameHeader+int64(f.length)-int64(len(end)))
	return err == nil && len(bytes.Trim(end, "\x00")) > 0
}

// replaceStep replaces a segment by what can be read of it.
func (d folder) replaceStep(root, dir string, s *segment, v *salvaged, covered uint64) repair.Step {
	file := d.fs.PathJoin(dir, s.name)
	why := ""
	var lost []string
	for _, at := range v.damage {
		if why != "" {
			why += "; "
		}
		why += fmt.Sprintf("offset %d: %d bytes: %v", at.Offset, at.Bytes, at.Why)
		switch {
		case !at.End && (at.Last <= covered || at.Last < at.First):
		case at.End && at.First > covered && !v.written:
			why += " (as a crash leaves it, with nothing acknowledged)"
		case at.End:
			lost = append(lost, fmt.Sprintf("rows of the journal from record %d on, if they were acknowledged", max(at.First, covered+1)))
		default:
			lost = append(lost, fmt.Sprintf("rows of the journal's records %d to %d", max(at.First, covered+1), at.Last))
		}
	}
	loss := strings.Join(lost, "; ")
	step := repair.Step{Object: file, Why: why, Action: "set the segment aside, and replace it by one with its good records", Loss: loss}
	step.Do = func(context.Context) error {
		n := repair.Note{Why: why}
		if loss != "" {
			n.Lost = &repair.Lost{What: repair.Rows, Text: loss}
		}
		if err := repair.Keep(d.fs, root, file, n); err != nil {
			return err
		}
		return d.replace(s.header, v.frames)
	}
	return step
}

// fillStep puts a segment of empty records in place of a missing one.
func (d folder) fillStep(root, dir string, next *segment, covered uint64) repair.Step {
	first, last := covered+1, next.first-1
	file := d.fs.PathJoin(dir, segmentName(first))
	why := fmt.Sprintf("the records %d to %d are missing: the journal begins with %d, and parts end with %d", first, last, next.first, covered)
	loss := fmt.Sprintf("rows of the journal's records %d to %d", first, last)
	return repair.Step{Object: file, Why: why, Action: "put empty records in their place", Loss: loss, Do: func(context.Context) error {
		if last-first >= maxFill {
			return fmt.Errorf("journal %s: %w: %d records are missing, and a repair replaces at most %d", d.path, model.ErrCorrupt, last-first+1, maxFill)
		}
		if err := repair.Record(d.fs, root, file, repair.Note{Why: why, Lost: &repair.Lost{What: repair.Rows, Text: loss}}); err != nil {
			return err
		}
		var v salvaged
		v.fill(first, last)
		return d.replace(header{seed: next.seed, first: first, before: covered}, v.frames)
	}}
}

func (d folder) replace(h header, frames []byte) error {
	f, _, err := d.create(h, frames)
	if err != nil {
		return fmt.Errorf("journal %s: %w: %w", d.file(segmentName(h.first)), model.ErrTransient, err)
	}
	return f.Close()
}
