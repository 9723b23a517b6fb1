package file

import (
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// FuzzIndex gives bytes to the decoders of index pages and footers.
func FuzzIndex(f *testing.F) {
	entries := make([]Entry, 40)
	for i := range entries {
		entries[i] = Entry{Addr: Addr{int64(8 + 10*i), 10}, Rank0: uint32(i), Ranks: 1, Rows: 3}
	}
	for _, s := range indexSections {
		f.Add(indexPageOf(s, entries))
	}
	m := footer{meta: Meta{Signal: model.Logs, Range: NoTimes, Tenants: []Tenant{{Name: "t", Series: 3, Samples: 2, Range: model.TimeRange{Min: 1, Max: 5}}}}}
	m.meta.SetSources([]Source{{"n", 1, 2, 3}})
	m.index = make([][]Entry, len(indexSections))
	m.index[0] = entries
	f.Add(m.append(nil, indexSections))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readFooter(b, plainVersion, 1<<20, indexSections)
		_, _ = readFooter(b, FormatVersion, 1<<20, indexSections)
		for _, s := range indexSections {
			entries, err := ReadIndexPage(nil, b, s, 1<<20)
			var index indexDir
			if index.decode(b, s, 1<<20) != nil {
				continue
			}
			for i := index.count - 1; i >= 0; i -= 1 + index.count/10 {
				// Of a page that does not check out a part may.
				if index.seek(i) == nil && err == nil && index.entry.Addr != entries[i].Addr {
					t.Fatalf("entry %d: %+v, should be %+v", i, index.entry, entries[i])
				}
				found, searchErr := index.search(func(e *Entry) bool { return e.Addr.Off > 1<<19 })
				if err == nil && (searchErr != nil || found != (entries[index.count-1].Addr.Off > 1<<19)) {
					t.Fatalf("found %v, %v", found, searchErr)
				}
			}
		}
	})
}
