package file

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Meta describes a part, in its footer.
type Meta struct {
	Seed   model.KeySeed
	Signal model.Signal
	// Sources are the journals whose rows the part holds: at least one, by (Node, Epoch).
	Sources []Source
	// Node, Epoch, SeqLo and SeqHi are those of the first source, which is the only one until parts of
	// several nodes are merged.
	Node         string
	Epoch        uint64
	SeqLo, SeqHi uint64
	// Windows says in what the masks divide time, if there are masks.
	Windows Windows
	// Created is in Unix nanoseconds.
	Created int64
	// Labels says that the part has labels and postings.
	Labels bool

	// Range bounds the times of the rows of all families. Min > Max if there is no row.
	Range                      model.TimeRange
	Series, Samples, Exemplars uint64
	// Text counts lines, TextBytes the bytes of them, without their metadata.
	Text, TextBytes uint64
	// Tenants are sorted by name.
	Tenants []Tenant
}

// Source is a range of a journal.
type Source struct {
	// Node names the process that wrote the journal, Epoch the journal: when that was begun, in Unix
	// nanoseconds. Sequence numbers of two journals are not comparable.
	Node  string
	Epoch uint64
	// SeqLo and SeqHi bound the sequence numbers of the batches whose rows the part holds, inclusive.
	SeqLo, SeqHi uint64
}

func (s *Source) less(o *Source) bool {
	return s.Node < o.Node || s.Node == o.Node && s.Epoch < o.Epoch
}

// SetSources sets the sources. It returns the reason why they are invalid, or "".
func (m *Meta) SetSources(sources []Source) string {
	if len(sources) == 0 {
		return "no source"
	}
	for i := range sources {
		s := &sources[i]
		switch {
		case s.SeqLo > s.SeqHi:
			return fmt.Sprintf("source %q has the sequence numbers [%d, %d]", s.Node, s.SeqLo, s.SeqHi)
		case i > 0 && !sources[i-1].less(s):
			return fmt.Sprintf("source %q of epoch %d stands after %q of %d", s.Node, s.Epoch, sources[i-1].Node, sources[i-1].Epoch)
		}
	}
	m.Sources = sources
	m.Node, m.Epoch, m.SeqLo, m.SeqHi = sources[0].Node, sources[0].Epoch, sources[0].SeqLo, sources[0].SeqHi
	return ""
}

// Tenant is the entry of one tenant in the directory of a part. Its series have the ranks [Rank0,
// Rank0+Series).
type Tenant struct {
	Name               string
	Rank0              uint32
	Series             uint32
	Samples, Exemplars uint64
	Text, TextBytes    uint64 // as in Meta
	// Range bounds the times of the tenant's rows of all families. Min > Max if it has no row.
	Range model.TimeRange
}

// add counts the rows of a tenant.
func (m *Meta) add(t *Tenant) {
	m.Samples, m.Exemplars = m.Samples+t.Samples, m.Exemplars+t.Exemplars
	m.Text, m.TextBytes = m.Text+t.Text, m.TextBytes+t.TextBytes
}

// Tenant returns the directory entry of a tenant, or nil.
func (m *Meta) Tenant(name string) *Tenant {
	lo, hi := 0, len(m.Tenants)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if m.Tenants[mid].Name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(m.Tenants) && m.Tenants[lo].Name == name {
		return &m.Tenants[lo]
	}
	return nil
}

// NoTimes is the range of no rows. Growing it by a time gives the range of that time.
var NoTimes = model.TimeRange{Min: 1<<63 - 1, Max: -1 << 63}
