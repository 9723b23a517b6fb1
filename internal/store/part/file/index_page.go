package file

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/shaledb/shale/internal/store/part/column"
)

// indexRun is the number of entries in a run of an index page. The first entry of a run has a whole offset
// and rank, so that a lookup decodes the first entries of a few runs and then one run, not the thousands of
// entries of the page.
const indexRun = 16

// indexDir is a cursor over the entries of an index page. It decodes only the entries that it passes.
type indexDir struct {
	section *Section
	size    int64 // of the file
	count   int
	ends    []byte // [indexRuns(count) x u32]: where runs end in entries
	entries []byte

	// entry is number at, and coder and rest are at the position after it. Names and values alias the
	// payload.
	at    int
	entry Entry
	coder entryCoder
	rest  column.Scan // of its run
}

func indexRuns(count int) int { return (count + indexRun - 1) / indexRun }

// decode reads the header of an index page. There is no current entry then.
func (d *indexDir) decode(payload []byte, sec *Section, size int64) error {
	*d = indexDir{section: sec, size: size, at: -1}
	s := column.Scan{Rest: payload}
	if got := [2]byte{s.Byte(), s.Byte()}; got != sec.stored() {
		return column.Corrupt("index page of section %d and family %d, should be of %s", got[0], got[1], sec)
	}
	d.count = s.Below(uint64(len(payload)))
	d.ends = s.Next(4 * uint64(indexRuns(d.count)))
	d.entries = s.Rest
	const leastBytes = 4 // of an entry
	if s.Bad || d.count == 0 || d.count > len(d.entries)/leastBytes || d.end(indexRuns(d.count)-1) != len(d.entries) {
		d.count = 0
		return d.bad()
	}
	return nil
}

// bad leaves no current entry.
func (d *indexDir) bad() error {
	d.at = -1
	return column.Corrupt("index page of %s: a field is cut short or out of bounds", d.section)
}

// end returns the offset at which a run ends in the entries.
func (d *indexDir) end(run int) int { return int(binary.LittleEndian.Uint32(d.ends[4*run:])) }

// head moves to the first entry of a run.
func (d *indexDir) head(run int) error {
	begin, end := 0, d.end(run)
	if run > 0 {
		begin = d.end(run - 1)
	}
	if begin > end || end > len(d.entries) {
		return d.bad()
	}
	d.rest, d.coder = column.Scan{Rest: d.entries[begin:end]}, entryCoder{}
	d.at = indexRun * run
	return d.read()
}

func (d *indexDir) read() error {
	d.entry = d.coder.read(&d.rest, d.section, d.size)
	if d.rest.Bad || len(d.rest.Rest) > 0 && (d.at+1 == d.count || (d.at+1)%indexRun == 0) {
		return d.bad()
	}
	if t := &d.entry.Text; t.Bytes > 0 != (t.Lines.Len > 0) {
		d.at = -1
		return column.Corrupt("index page of %s: %d bytes of lines in a page of %d", d.section, t.Bytes, t.Lines.Len)
	}
	return nil
}

// next moves to the next entry, which must exist. It verifies that it may follow the current one.
func (d *indexDir) next() error {
	d.at++
	if d.at%indexRun > 0 {
		return d.read()
	}
	before := d.coder
	if err := d.head(d.at / indexRun); err != nil {
		return err
	}
	return d.follows(&before)
}

// follows verifies that the current entry, which was read without those before it, may follow them.
func (d *indexDir) follows(before *entryCoder) error {
	if !before.leadsTo(d.section, &d.entry) {
		return d.bad()
	}
	return nil
}

// seek moves to entry number i.
func (d *indexDir) seek(i int) error {
	if d.at < 0 || i < d.at || i/indexRun > d.at/indexRun {
		if err := d.head(i / indexRun); err != nil {
			return err
		}
	}
	for d.at < i {
		if err := d.next(); err != nil {
			return err
		}
	}
	return nil
}

// search moves to the first entry for which beyond returns true; all entries after it must be beyond, too. If
// there is none, it moves to the last entry and returns false.
func (d *indexDir) search(beyond func(*Entry) bool) (found bool, err error) {
	run := sort.Search(indexRuns(d.count), func(run int) bool {
		if err == nil {
			err = d.head(run)
		}
		return err != nil || beyond(&d.entry)
	})
	if err == nil {
		err = d.head(max(0, run-1))
	}
	for err == nil && !beyond(&d.entry) {
		if d.at == d.count-1 {
			return false, nil
		}
		err = d.next()
	}
	return err == nil, err
}

// searchLast moves to the last entry for which beyond returns false, or to the first if there is none.
func (d *indexDir) searchLast(beyond func(*Entry) bool) error {
	found, err := d.search(beyond)
	if err == nil && found && d.at > 0 {
		err = d.seek(d.at - 1)
	}
	return err
}

// ReadIndexPage decodes a whole index page into dst. Names and values alias the payload.
func ReadIndexPage(dst []Entry, payload []byte, sec *Section, size int64) ([]Entry, error) {
	var d indexDir
	if err := d.decode(payload, sec, size); err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, d.count)
	err := d.head(0)
	for ; err == nil; err = d.next() {
		if dst = append(dst, d.entry); d.at == d.count-1 {
			break
		}
	}
	return dst, err
}
