package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/topics"
)

// version is that of all records.
const version = 1

// Bounds of what is decoded.
const (
	maxValue   = 1 << 20
	maxTenants = 10_000
)

// ErrUnknown says that a record is of a kind or version that this program does not know.
var ErrUnknown = errors.New("unknown kind or version of record")

// Partition names a partition of an epoch.
type Partition struct {
	Epoch  uint64
	Number int32
}

// Forget says that the owner of a partition lacks labels of its series: whoever writes announces all of them
// again.
type Forget struct {
	Partition Partition
	// Since is the offset of the first record that waits for labels.
	Since int64
}

// Series says how many active series tenants have in a partition.
type Series struct {
	Partition Partition
	Active    map[string]int64
	// More says that further tenants have series.
	More bool
	// Known has the keys of the active series of tenants that are near their limit. Of a tenant without a
	// filter, any series may be active.
	Known map[string]Filter
}

// The kinds, with which keys begin.
const (
	forgetKind = "forget"
	seriesKind = "series"
	leaderKind = "ha"

	coveredKind = "covered"
	groupsKind  = "groups"
)

type forgetValue struct {
	Version int   `json:"version"`
	Since   int64 `json:"since"`
}

type seriesValue struct {
	Version int               `json:"version"`
	Active  map[string]int64  `json:"active"`
	Known   map[string]Filter `json:"known,omitempty"`
	More    bool              `json:"more,omitempty"`
}

func (p Partition) key(kind string) string { return fmt.Sprintf("%s/%d/%d", kind, p.Epoch, p.Number) }

// Encode returns the key and the value of a record.
func (f *Forget) Encode() (key string, value []byte) {
	return f.Partition.key(forgetKind), encode(forgetValue{version, f.Since})
}

// Encode returns the key and the value of a record.
func (s *Series) Encode() (key string, value []byte) {
	return s.Partition.key(seriesKind), encode(seriesValue{version, s.Active, s.Known, s.More})
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("BUG: numbers and names have a form in JSON: " + err.Error())
	}
	return text
}

// Decode returns a *Forget, a *Series, a *Groups, a *Covered, a *Leader or a *NoLeader. The error is
// [ErrUnknown], or of class corrupt.
func Decode(key string, value []byte) (any, error) {
	kind, rest, _ := strings.Cut(key, "/")
	if kind == leaderKind {
		return decodeLeader(key, rest, value)
	}
	if kind != forgetKind && kind != seriesKind && kind != coveredKind && kind != groupsKind {
		return nil, ErrUnknown
	}
	p, err := partition(rest)
	if err != nil {
		return nil, fmt.Errorf("record of state %q: %w: %w", key, model.ErrCorrupt, err)
	}
	if err = versionOf(value); errors.Is(err, ErrUnknown) {
		return nil, err
	}
	var decoded any
	switch {
	case err != nil:
	case kind == coveredKind:
		decoded, err = decodeCovered(p, value)
	case kind == groupsKind:
		decoded, err = decodeGroups(p, value)
	case kind == forgetKind:
		var v forgetValue
		if err = json.Unmarshal(value, &v); err == nil && v.Since < 0 {
			err = fmt.Errorf("since is %d", v.Since)
		}
		decoded = &Forget{p, v.Since}
	default:
		var v seriesValue
		if err = json.Unmarshal(value, &v); err == nil {
			err = v.check()
		}
		decoded = &Series{p, v.Active, v.More, v.Known}
	}
	if err != nil {
		return nil, fmt.Errorf("record of state %q: %w: %w", key, model.ErrCorrupt, err)
	}
	return decoded, nil
}

// versionOf returns an error unless a value is of a version that this program knows.
func versionOf(value []byte) error {
	if len(value) > maxValue {
		return fmt.Errorf("%d bytes, the limit is %d", len(value), maxValue)
	}
	var of struct {
		Version int `json:"version"`
	}
	err := json.Unmarshal(value, &of)
	if err == nil && of.Version != version {
		err = ErrUnknown
	}
	return err
}

func partition(text string) (p Partition, err error) {
	epoch, number, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	if err == nil {
		p.Epoch, err = strconv.ParseUint(epoch, 10, 64)
	}
	if p.Number = int32(n); err == nil && (n < 0 || n >= topics.MaxPartitions || p.key("") != "/"+text) {
		err = fmt.Errorf("%q is not a partition", text)
	}
	return p, err
}

func (v *seriesValue) check() error {
	if len(v.Active) > maxTenants {
		return fmt.Errorf("%d tenants, the limit is %d", len(v.Active), maxTenants)
	}
	for tenant, f := range v.Known {
		if !f.valid() {
			return fmt.Errorf("the filter of tenant %q has %d bytes", tenant, len(f))
		}
	}
	for tenant, n := range v.Active {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("tenant %q has %d series", tenant, n)
		}
	}
	return nil
}
