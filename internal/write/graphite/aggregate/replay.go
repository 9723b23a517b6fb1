package aggregate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/write/graphite/rules"
)

// openLog reads the newest file and begins another with a snapshot of it.
func (a *Aggregator) openLog() error {
	numbers, err := a.folder().Open()
	if err != nil {
		return err
	}
	if len(numbers) > 0 {
		a.file.number = numbers[len(numbers)-1]
		if err := a.replay(a.file.number); err != nil {
			return err
		}
	}
	if err := a.Sync(); err != nil {
		return err
	}
	// Older files are left if a crash came first.
	for _, n := range numbers {
		if err := a.folder().Remove(n); err != nil && n != numbers[len(numbers)-1] {
			return err
		}
	}
	return nil
}

// replay takes what a file says. A file that is cut off or damaged counts up to there.
func (a *Aggregator) replay(number uint64) error {
	cut, err := a.folder().Read(number, a.apply)
	if err != nil {
		return fmt.Errorf("%w; move the file away to start without what aggregates have taken", err)
	}
	if cut != nil {
		a.metrics.logDamage.Inc()
		a.o.Logger.Warn("the end of the log of aggregation is cut off or damaged; what came after is lost", "file", a.folder().Path(number), "err", cut)
	}
	now := a.o.Now() / int64(time.Second)
	for _, b := range a.buffers {
		a.schedule(b, now)
	}
	return nil
}

// entries reads the entries of a record.
type entries struct {
	rest []byte
	err  error
}

var errCut = errors.New("an entry is cut off")

func (e *entries) uvarint() uint64 {
	v, n := binary.Uvarint(e.rest)
	if n <= 0 {
		e.err, e.rest = errCut, nil
		return 0
	}
	e.rest = e.rest[n:]
	return v
}

func (e *entries) varint() int64 {
	u := e.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

func (e *entries) bytes(n uint64) []byte {
	if n > uint64(len(e.rest)) {
		e.err, e.rest = errCut, nil
		return nil
	}
	b := e.rest[:n]
	e.rest = e.rest[n:]
	return b
}

func (e *entries) float() float64 {
	b := e.bytes(8)
	if b == nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

func (e *entries) text() string { return strings.Clone(string(e.bytes(e.uvarint()))) }

// apply does what entries say.
func (a *Aggregator) apply(record []byte) error {
	e := entries{rest: record}
	for len(e.rest) > 0 {
		kind := e.bytes(1)[0]
		id := e.uvarint()
		if kind == entryBuffer {
			a.applyBuffer(&e, id)
			if e.err != nil {
				return e.err
			}
			continue
		}
		b := a.buffers[id]
		if e.err != nil || b == nil {
			return errors.Join(e.err, fmt.Errorf("an entry of kind %q is about buffer %d, which does not exist", kind, id))
		}
		switch kind {
		case entryValue:
			start, v := e.varint(), e.float()
			if e.err == nil {
				a.interval(b, start).add(b.method, v)
				a.bytes += b.perValue()
			}
		case entryInterval:
			a.applyInterval(&e, b)
		case entryForgotten:
			a.forget(b, e.varint())
		case entryRetired:
			a.retire(b)
		case entryRemoved:
			a.remove(b)
		default:
			return fmt.Errorf("an entry has the unknown kind %q", kind)
		}
		if e.err != nil {
			return e.err
		}
	}
	return nil
}

func (b *buffer) perValue() int64 {
	if b.method.NeedsValues() {
		return valueBytes
	}
	return 0
}

func (a *Aggregator) applyBuffer(e *entries, id uint64) {
	b := &buffer{id: id, frequency: int64(e.uvarint())}
	if m := e.bytes(1); m != nil {
		b.method = rules.Method(m[0])
	}
	b.tenant, b.path = e.text(), e.text()
	if e.err == nil && (!b.method.IsValid() || b.frequency <= 0 || a.buffers[id] != nil || a.byName[b.name] != nil) {
		e.err = fmt.Errorf("buffer %d of %q is invalid", id, b.path)
	}
	if e.err == nil {
		a.put(b)
	}
}

// interval returns the interval that begins at a time, and makes it if there is none.
func (a *Aggregator) interval(b *buffer, start int64) *interval {
	if i := b.at(start); i != nil {
		return i
	}
	b.intervals = append(b.intervals, interval{start: start})
	a.bytes += intervalBytes
	return &b.intervals[len(b.intervals)-1]
}

func (a *Aggregator) applyInterval(e *entries, b *buffer) {
	start, count, value, n := e.varint(), int64(e.uvarint()), e.float(), e.uvarint()
	values := e.bytes(min(n, uint64(len(e.rest)/8+1)) * 8)
	if e.err != nil {
		return
	}
	if b.at(start) != nil || count <= 0 || b.method.NeedsValues() && n != uint64(count) {
		e.err = fmt.Errorf("an interval of buffer %d is invalid", b.id)
		return
	}
	i := a.interval(b, start)
	i.count, i.value, i.active = count, value, true
	for ; len(values) > 0; values = values[8:] {
		i.values = append(i.values, math.Float64frombits(binary.LittleEndian.Uint64(values)))
	}
	a.bytes += int64(n) * b.perValue()
}
