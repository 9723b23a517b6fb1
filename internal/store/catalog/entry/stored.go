package entry

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// MaxNumber bounds sequence numbers, order numbers and generations, so that one more never overflows.
const MaxNumber = 1<<62 - 1

// BlockPrefix begins the names of the objects of blocks.
const BlockPrefix = "blocks/"

// ObjectName returns the name of a block's object.
func ObjectName(id string) string { return BlockPrefix + id }

// Stored is the form of an entry in commit records. A field never changes its meaning.
type Stored struct {
	ID     string `json:"id"`
	Signal string `json:"signal"`
	Group  string `json:"group"`
	Level  Level  `json:"level"`
	// Resolution is the length of the slots of rollups in nanoseconds. 0: rows as they came.
	Resolution  int64          `json:"resolution"`
	Base        string         `json:"base,omitempty"`
	Policies    string         `json:"policies,omitempty"`
	Sources     []storedSource `json:"sources"`
	OrderLo     uint64         `json:"order_lo"`
	OrderHi     uint64         `json:"order_hi"`
	MinTime     int64          `json:"min_time"`
	MaxTime     int64          `json:"max_time"`
	KeyMin      string         `json:"key_min"`
	KeyMax      string         `json:"key_max"`
	Series      uint64         `json:"series"`
	Samples     uint64         `json:"samples"`
	Lines       uint64         `json:"lines,omitempty"`
	LineBytes   uint64         `json:"line_bytes,omitempty"`
	Bytes       int64          `json:"bytes"`
	TenantCount int            `json:"tenant_count"`
	FirstTenant string         `json:"first_tenant"`
	FirstKey    string         `json:"first_key"`
	LastTenant  string         `json:"last_tenant"`
	LastKey     string         `json:"last_key"`
	Tenants     []string       `json:"tenants,omitempty"`
	Generation  uint64         `json:"generation"`
	Created     int64          `json:"created"`
}

type storedSource struct {
	Node  string `json:"node"`
	Epoch uint64 `json:"epoch"`
	SeqLo uint64 `json:"seq_lo"`
	SeqHi uint64 `json:"seq_hi"`
}

// StoredOf returns the stored form of an entry.
func StoredOf(b *Block) Stored {
	e := Stored{
		ID: b.ID, Signal: b.Signal.String(), Group: b.Group, Level: b.Level, OrderLo: b.OrderLo, OrderHi: b.OrderHi,
		MinTime: b.Range.Min, MaxTime: b.Range.Max, KeyMin: b.KeyMin.String(), KeyMax: b.KeyMax.String(),
		FirstKey: b.FirstKey.String(), LastKey: b.LastKey.String(),
		Series: b.Series, Samples: b.Samples, Lines: b.Lines, LineBytes: b.LineBytes, Bytes: b.Bytes, TenantCount: b.TenantCount,
		FirstTenant: b.FirstTenant, LastTenant: b.LastTenant, Tenants: b.Tenants, Generation: b.Generation, Created: b.Created,
		Resolution: b.Resolution, Base: b.Base, Policies: b.Policies,
	}
	for _, s := range b.Sources {
		e.Sources = append(e.Sources, storedSource(s))
	}
	return e
}

// Block validates a stored entry.
func (e *Stored) Block() (Block, error) {
	b := Block{
		ID: e.ID, Group: e.Group, Level: e.Level, Range: model.TimeRange{Min: e.MinTime, Max: e.MaxTime}, OrderLo: e.OrderLo, OrderHi: e.OrderHi,
		Series: e.Series, Samples: e.Samples, Lines: e.Lines, LineBytes: e.LineBytes, Bytes: e.Bytes, TenantCount: e.TenantCount, Tenants: e.Tenants,
		FirstTenant: e.FirstTenant, LastTenant: e.LastTenant, Generation: e.Generation, Created: e.Created,
		Resolution: e.Resolution, Base: e.Base, Policies: e.Policies,
	}
	var err error
	if b.Signal, err = parseSignal(e.Signal); err != nil {
		return b, err
	}
	for _, s := range e.Sources {
		if s.SeqLo > s.SeqHi || s.SeqHi > MaxNumber {
			return b, fmt.Errorf("invalid sequence numbers %d to %d", s.SeqLo, s.SeqHi)
		}
		b.Sources = append(b.Sources, Source(s))
	}
	for key, text := range map[*model.Key]string{&b.KeyMin: e.KeyMin, &b.KeyMax: e.KeyMax, &b.FirstKey: e.FirstKey, &b.LastKey: e.LastKey} {
		if *key, err = parseKey(text); err != nil {
			return b, err
		}
	}
	n := len(e.Tenants)
	switch {
	case bucket.CheckName(ObjectName(e.ID)) != nil:
		return b, errors.New("the id is not a valid object name")
	case e.Resolution < 0 || (e.Resolution > 0) != (e.Base != "") || (e.Resolution > 0) != (e.Policies != ""):
		return b, fmt.Errorf("invalid resolution %d of base %q by %q", e.Resolution, e.Base, e.Policies)
	case len(e.Sources) == 0:
		return b, errors.New("the entry has no sources")
	case e.Group == "":
		return b, errors.New("the entry has no retention group")
	case e.OrderLo > e.OrderHi || e.OrderHi > MaxNumber:
		return b, fmt.Errorf("invalid order numbers %d to %d", e.OrderLo, e.OrderHi)
	case e.Generation > MaxNumber:
		return b, fmt.Errorf("generation %d exceeds the maximum", e.Generation)
	case e.Bytes < 0 || b.KeyMax.Less(b.KeyMin) || b.FirstKey.Less(b.KeyMin) || b.KeyMax.Less(b.LastKey):
		return b, fmt.Errorf("inconsistent size or keys: %d bytes, keys %s to %s, from %s to %s", e.Bytes, b.KeyMin, b.KeyMax, b.FirstKey, b.LastKey)
	case !slices.IsSorted(e.Tenants) || e.TenantCount < n || n > MaxTenants || e.FirstTenant > e.LastTenant,
		n > 0 && (e.FirstTenant != e.Tenants[0] || e.LastTenant != e.Tenants[n-1] || e.TenantCount != n):
		return b, errors.New("the tenants are inconsistent")
	}
	b.Complete()
	return b, nil
}

func parseSignal(s string) (model.Signal, error) {
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		if signal.String() == s {
			return signal, nil
		}
	}
	return 0, fmt.Errorf("unknown signal %q", s)
}

func parseKey(s string) (model.Key, error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != model.KeyBytes {
		return model.Key{}, fmt.Errorf("invalid key %q", s)
	}
	return model.KeyFrom(raw), nil
}
