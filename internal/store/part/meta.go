package part

import "github.com/shaledb/shale/internal/model"

// Meta is what a part says of itself, in its footer.
type Meta struct {
	Seed   model.KeySeed
	Signal model.Signal
	// Node names the process that wrote the part, and Epoch its journal: when that was begun, in Unix nanoseconds.
	// Sequence numbers of two journals are not comparable. The format has room for rows of several.
	Node  string
	Epoch uint64
	// SeqLo and SeqHi bound the journal sequence numbers of the batches whose rows the part holds, inclusive.
	SeqLo, SeqHi uint64
	// Created is in Unix nanoseconds.
	Created int64
	// Labels says that the part has labels and postings.
	Labels bool

	// Range bounds the times of the rows of all families. Min > Max if there is no row.
	Range                      model.TimeRange
	Series, Samples, Exemplars uint64
	// Tenants are sorted by name.
	Tenants []Tenant
}

// Tenant is the entry of one tenant in the directory of a part. Its series have the ranks [Rank0, Rank0+Series).
type Tenant struct {
	Name               string
	Rank0              uint32
	Series             uint32
	Samples, Exemplars uint64
	// Range bounds the times of the tenant's rows of all families. Min > Max if it has no row.
	Range model.TimeRange
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

// noTimes is the range of no rows at all: growing it by any time gives that time.
var noTimes = model.TimeRange{Min: 1<<63 - 1, Max: -1 << 63}
