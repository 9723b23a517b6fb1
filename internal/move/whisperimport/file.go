package whisperimport

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// Dialect says what the numbers of aggregation methods from 6 on mean.
type Dialect string

// The dialects: of carbon, written in Python, and of go-carbon.
const (
	Python Dialect = "python"
	Go     Dialect = "go"
)

// point is a slot: its begin in Unix seconds, and the bits of its value.
type point struct {
	at   int64
	bits uint64
}

// archive is what whisper would show of one archive, in the order of time.
type archive struct {
	policy.Archive
	points []point
}

// file is a decoded file.
type file struct {
	compressed bool
	// method makes the rollups, if methodKnown: go-carbon has methods that the policies do not have.
	method      policy.Method
	methodKnown bool
	xff         float32
	archives    []archive
	// future counts slots whose time is after now, and stale those that whisper overwrites or no longer shows.
	future, stale int64
	// others counts archives that have another method for a step that an archive before has.
	others int
}

const (
	headerBytes  = 16
	archiveBytes = 12
	pointBytes   = 12
	maxArchives  = 16
	magic        = "whisper_compressed"
	// maxPoints bounds the points of a file, and so its memory. A second for a year is as many.
	maxPoints = 32 << 20
	maxBytes  = maxPoints * pointBytes
)

// decode reads a file as whisper would at a time in Unix seconds. An error is of class corrupt.
func decode(data []byte, d Dialect, now int64) (*file, error) {
	switch {
	case len(data) == 0:
		return nil, corrupt("the file is empty")
	case bytes.HasPrefix(data, []byte(magic)):
		return decodeCompressed(data, now)
	default:
		return decodePlain(data, d, now)
	}
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", model.ErrCorrupt, fmt.Errorf(format, args...))
}

func truncated(data []byte, need int64) error {
	return corrupt("the file is truncated: %d of %d bytes", len(data), need)
}

// setMethod sets the method by its number in a file.
func (f *file) setMethod(n uint32, d Dialect) error {
	const lastCommon, lastPython, lastGo = 5, 8, 8
	if n < 1 || d == Python && n > lastPython || n > lastGo {
		return corrupt("aggregation method %d is unknown", n)
	}
	common := []policy.Method{policy.Average, policy.Sum, policy.Last, policy.Max, policy.Min, policy.AvgZero, policy.AbsMax, policy.AbsMin}
	if f.methodKnown = n <= lastCommon || d == Python; f.methodKnown {
		f.method = common[n-1]
	}
	return nil
}

func (f *file) setXFF(bits uint32) error {
	f.xff = math.Float32frombits(bits)
	if !(f.xff >= 0 && f.xff <= 1) {
		return corrupt("xFilesFactor is %v: must be from 0 to 1", f.xff)
	}
	return nil
}

// checkArchives applies the rules of whisper.
func (f *file) checkArchives() error {
	all := make([]policy.Archive, len(f.archives))
	for i := range f.archives {
		all[i] = f.archives[i].Archive
	}
	if err := policy.Validate(all); err != nil {
		return corrupt("archives: %w", err)
	}
	return nil
}

func decodePlain(data []byte, d Dialect, now int64) (*file, error) {
	if len(data) < headerBytes {
		return nil, truncated(data, headerBytes)
	}
	f := &file{}
	if err := f.setMethod(binary.BigEndian.Uint32(data), d); err != nil {
		return nil, err
	}
	if err := f.setXFF(binary.BigEndian.Uint32(data[8:])); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(data[12:])
	if n < 1 || n > maxArchives {
		return nil, corrupt("the file has %d archives: must have 1 to %d", n, maxArchives)
	}
	need := int64(headerBytes + archiveBytes*n)
	if int64(len(data)) < need {
		return nil, truncated(data, need)
	}
	for i := range n {
		info := data[headerBytes+archiveBytes*i:]
		offset := int64(binary.BigEndian.Uint32(info))
		a := archive{Archive: policy.Archive{Step: int64(binary.BigEndian.Uint32(info[4:])), Points: int64(binary.BigEndian.Uint32(info[8:]))}}
		f.archives = append(f.archives, a)
		if offset != need {
			return nil, corrupt("archive %d begins at byte %d, expected %d", i, offset, need)
		}
		if need += pointBytes * a.Points; int64(len(data)) < need {
			return nil, truncated(data, need)
		}
	}
	if err := f.checkArchives(); err != nil {
		return nil, err
	}
	at := int64(headerBytes + archiveBytes*n)
	for i := range f.archives {
		a := &f.archives[i]
		end := at + pointBytes*a.Points
		f.readRing(a, data[at:end], now)
		at = end
	}
	return f, nil
}

// readRing reads the slots that whisper finds where it looks for them: the place of the first one is reckoned
// from the time in slot 0.
func (f *file) readRing(a *archive, ring []byte, now int64) {
	slot := func(i int64) point {
		b := ring[pointBytes*i:]
		return point{int64(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint64(b[4:])}
	}
	oldest := now - a.Retention()
	first := oldest - oldest%a.Step + a.Step
	shown := int64(0)
	if base := slot(0).at; base != 0 {
		distance := first - base
		steps := distance / a.Step
		if distance%a.Step < 0 {
			steps--
		}
		place := (steps%a.Points + a.Points) % a.Points
		for i := range a.Points {
			if p := slot((place + i) % a.Points); p.at == first+i*a.Step {
				a.points = append(a.points, p)
				shown++
			}
		}
	}
	for i := range a.Points {
		switch at := slot(i).at; {
		case at > now:
			f.future++
		case at != 0:
			f.stale++
		}
	}
	f.stale -= shown
}
