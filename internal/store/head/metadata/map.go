package metadata

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
)

const (
	// MaxTextBytes bounds what is kept of one metric family.
	MaxTextBytes = 16 << 10
	// EntryBytes is what a family takes besides its texts.
	EntryBytes = 160
	// IdleAfter is how long a family stays after it was described last, even if others need the room. Senders
	// repeat metadata, and receivers pass it on at least every hour.
	IdleAfter = 3 * time.Hour
	// sweepEvery is the least time between searches of a full map for idle families.
	sweepEvery = time.Minute
)

// Limits bounds what senders may describe. The tags make the fields settings: see package config.
type Limits struct {
	// Families bounds the metric families of a tenant (10,000), TenantBytes their descriptions (4 MiB), Bytes
	// those of all tenants (16 MiB).
	Families    int   `name:"limits.metadata-families" type:"count" default:"10000" placeholder:"N" min:"1" help:"Most metric families of one tenant whose type, help and unit are kept."`
	TenantBytes int64 `name:"limits.metadata-tenant-bytes" type:"size" default:"4MiB" placeholder:"SIZE" min:"1KiB" help:"Most bytes of metric metadata (type, help and unit of families) of one tenant."`
	Bytes       int64 `name:"limits.metadata-bytes" type:"size" default:"16MiB" placeholder:"SIZE" min:"1KiB" help:"Most bytes of metric metadata (type, help and unit of families) of all tenants together."`
}

// Map holds what senders tell about metric families: a map for each tenant, bounded in families and bytes.
// The last description counts, but one without help keeps the help: some senders have type and unit only. It
// is safe for concurrent use.
type Map struct {
	limits Limits

	mu      sync.Mutex
	tenants map[string]*tenantFamilies
	bytes   int64
	changed bool // since it was last written
	written int64
	saves   uint64 // of the file
}

type tenantFamilies struct {
	families map[string]*described
	bytes    int64
	swept    int64
}

type described struct {
	model.Metadata
	seen int64 // Unix nanoseconds
}

func New(l Limits) *Map {
	return &Map{limits: l, tenants: make(map[string]*tenantFamilies)}
}

func entryBytes(family string, m *model.Metadata) int64 {
	return int64(len(family)+len(m.Type)+len(m.Help)+len(m.Unit)) + EntryBytes
}

func (md *Map) names(tenant, family string) []string {
	if family != "" {
		return []string{family}
	}
	md.mu.Lock()
	defer md.mu.Unlock()
	t := md.tenants[tenant]
	if t == nil {
		return nil
	}
	names := make([]string, 0, len(t.families))
	for name := range t.families {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Each calls emit with the description of a family, or of all families of a tenant in the order of their
// names if the family is empty, until emit returns false.
func (md *Map) Each(tenant, family string, emit func(family string, m model.Metadata) bool) {
	for _, name := range md.names(tenant, family) {
		if m, ok := md.get(tenant, name); ok && !emit(name, m) {
			return
		}
	}
}

func (md *Map) get(tenant, family string) (model.Metadata, bool) {
	md.mu.Lock()
	defer md.mu.Unlock()
	if t := md.tenants[tenant]; t != nil {
		if d := t.families[family]; d != nil {
			return d.Metadata, true
		}
	}
	return model.Metadata{}, false
}

// Put keeps the description of a metric family, or returns the limit that it would exceed, a
// [model.LimitError]. Invalid UTF-8 is replaced, since the file is JSON.
func (md *Map) Put(tenant, family string, m model.Metadata, now int64) error {
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	family, m = valid(family), model.Metadata{Type: valid(m.Type), Help: valid(m.Help), Unit: valid(m.Unit)}
	md.mu.Lock()
	defer md.mu.Unlock()
	t := md.tenants[tenant]
	if t == nil {
		t = &tenantFamilies{families: make(map[string]*described)}
		md.tenants[tenant] = t
	}
	old, have := t.families[family], int64(0)
	if old != nil {
		if m.Help == "" {
			m.Help = old.Help
		}
		if old.seen = now; old.Metadata == m {
			return nil
		}
		have = entryBytes(family, &old.Metadata)
	}
	need := entryBytes(family, &m) - have
	err := md.room(t, old == nil, need)
	if err != nil && md.sweep(t, now) {
		err = md.room(t, old == nil, need)
	}
	if err != nil {
		return err
	}
	t.families[family] = &described{m, now}
	t.bytes += need
	md.bytes += need
	md.changed = true
	return nil
}

// room returns the limit that a number of further bytes would exceed, or nil.
func (md *Map) room(t *tenantFamilies, another bool, bytes int64) *model.LimitError {
	limit := func(name, format string, args ...any) *model.LimitError {
		return &model.LimitError{Limit: "limits.metadata-" + name, Text: "metadata: " + fmt.Sprintf(format, args...)}
	}
	switch {
	case another && len(t.families) >= md.limits.Families:
		return limit("families", "the tenant has described %d metric %s and the limit is %d", len(t.families), english.PluralWord(len(t.families), "family", ""), md.limits.Families)
	case t.bytes+bytes > md.limits.TenantBytes:
		return limit("tenant-bytes", "the tenant's metadata takes %d of %d bytes", t.bytes, md.limits.TenantBytes)
	case md.bytes+bytes > md.limits.Bytes:
		return limit("bytes", "the metadata of all tenants takes %d of %d bytes", md.bytes, md.limits.Bytes)
	}
	return nil
}

// sweep drops the families that a tenant has not described for IdleAfter, and reports whether it dropped any.
func (md *Map) sweep(t *tenantFamilies, now int64) bool {
	if passed := now - t.swept; 0 <= passed && passed < int64(sweepEvery) {
		return false
	}
	t.swept = now
	before := t.bytes
	for family, d := range t.families {
		if now-d.seen > int64(IdleAfter) {
			delete(t.families, family)
			n := entryBytes(family, &d.Metadata)
			t.bytes, md.bytes = t.bytes-n, md.bytes-n
		}
	}
	md.changed = md.changed || t.bytes < before
	return t.bytes < before
}

// Usage returns how many families are described, and the bytes that they take.
func (md *Map) Usage() (families int, bytes int64) {
	md.mu.Lock()
	defer md.mu.Unlock()
	for _, t := range md.tenants {
		families += len(t.families)
	}
	return families, md.bytes
}

// Described is a family with its description.
type Described struct {
	Tenant, Family string
	model.Metadata
	Seen int64 // when it was described last, in Unix nanoseconds
}

// TakeChanged returns all families if the map has changed since the last call; always: in any case. They are
// in no order.
func (md *Map) TakeChanged(always bool) (all []Described) {
	md.mu.Lock()
	defer md.mu.Unlock()
	if !md.changed && !always {
		return nil
	}
	md.changed = false
	for tenant, t := range md.tenants {
		for family, d := range t.families {
			all = append(all, Described{tenant, family, d.Metadata, d.seen})
		}
	}
	return all
}

// Touch makes the map one that has changed.
func (md *Map) Touch() {
	md.mu.Lock()
	defer md.mu.Unlock()
	md.changed = true
}

// Adopt keeps what another map has of a family, unless this one was told later. It returns the limit that it
// would exceed.
func (md *Map) Adopt(d *Described) error {
	md.mu.Lock()
	if t := md.tenants[d.Tenant]; t != nil {
		if own := t.families[d.Family]; own != nil && own.seen >= d.Seen {
			defer md.mu.Unlock()
			if own.Help == "" && d.Help != "" && md.room(t, false, int64(len(d.Help))) == nil {
				own.Help = d.Help
				t.bytes, md.bytes, md.changed = t.bytes+int64(len(d.Help)), md.bytes+int64(len(d.Help)), true
			}
			return nil
		}
	}
	md.mu.Unlock()
	return md.Put(d.Tenant, d.Family, d.Metadata, d.Seen)
}
