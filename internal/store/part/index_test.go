package part

import (
	"errors"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestHostileIndexEntries: entries that do not follow each other as pages do are refused before anybody looks for a rank
// between them.
func TestHostileIndexEntries(t *testing.T) {
	page := func(rank0, ranks uint32) pageEntry { return pageEntry{rank0: rank0, ranks: ranks} }
	const size = 1000
	for _, c := range []struct {
		name    string
		entries []pageEntry
		// dense: of sections that cover all ranks; rows: of those that leave some out and go on in the next page.
		dense, rows bool
	}{
		{"one after the other", []pageEntry{page(0, 5), page(5, 2), page(7, 1)}, true, true},
		{"from a later rank on", []pageEntry{page(9, 5), page(14, 2)}, true, true},
		{"the same rank twice", []pageEntry{page(0, 5), page(4, 3), page(6, 1), page(6, 1)}, false, true},
		{"a gap", []pageEntry{page(0, 5), page(6, 2)}, false, true},
		{"two ranks back", []pageEntry{page(0, 5), page(3, 4)}, false, false},
		{"a page inside another", []pageEntry{page(0, 5), page(1, 2)}, false, false},
		{"the last rank there is", []pageEntry{page(1<<32-2, 2)}, true, true},
		{"beyond the last rank", []pageEntry{page(1<<32-2, 3)}, false, false},
	} {
		for s := range sections {
			if s == postingSection {
				continue
			}
			entries := append([]pageEntry(nil), c.entries...)
			off := int64(headerBytes)
			for i := range entries {
				entries[i].addr = Addr{off, 10}
				off += 10
			}
			_, err := readIndexPage(nil, indexPageOf(s, entries), s, size)
			good := c.dense && !s.rows() || c.rows && s.rows()
			if good && err != nil || !good && !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: %s: %v", s, c.name, err)
			}
		}
	}
}

func indexPageOf(s section, entries []pageEntry) []byte {
	x := indexWriter{section: s}
	for i := range entries {
		x.add(entries[i])
	}
	return x.payload(nil)
}

func TestHostileIndexPlaces(t *testing.T) {
	const size = 1000
	for s := range sections {
		for name, a := range map[string]Addr{
			"beyond the end":          {size, 1},
			"over the end":            {size - 9, 10},
			"longer than a page":      {8, maxPageBytes + envelopeMax + 1},
			"an offset of 63 bits":    {1<<63 - 1, 10},
			"an offset that is below": {-1, 10},
		} {
			_, err := readIndexPage(nil, indexPageOf(s, []pageEntry{{addr: a, ranks: 1}}), s, size)
			if !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: %s: %v", s, name, err)
			}
		}
		good := indexPageOf(s, []pageEntry{{addr: Addr{8, 10}, ranks: 1}})
		if _, err := readIndexPage(nil, good, s, size); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		for n := range good {
			if _, err := readIndexPage(nil, good[:n], s, size); !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: %d of %d bytes: %v", s, n, len(good), err)
			}
		}
		for other := range sections {
			if _, err := readIndexPage(nil, good, other, size); other != s && !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("an index page of %s read as one of %s: %v", s, other, err)
			}
		}
	}
}
