package topics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
)

// Epoch is a topic that carries writes, or has carried them.
type Epoch struct {
	// Number counts the epochs of the installation from 1. It is the epoch of the partitions' blocks.
	Number uint64
	Topic  string
	// ID is the identity of the topic, as Kafka's tools print it.
	ID         string
	Partitions int32
	// Begins has the first offset of each partition that belongs to Shale.
	Begins []int64
	// Begun is in Unix nanoseconds.
	Begun int64
	// BeforeLost says that an operator has given up what was not shipped of the epoch before.
	BeforeLost bool
	// BeforeEnds has the offset at which each partition of the epoch before ends: its topic has taken no record
	// since before this epoch was recorded. Nil: the epoch before is lost, or there is none.
	BeforeEnds []int64
}

// record is the object of an epoch.
type record struct {
	Version    int     `json:"version"`
	Epoch      uint64  `json:"epoch"`
	Topic      string  `json:"topic"`
	TopicID    string  `json:"topic_id"`
	Partitions int32   `json:"partitions"`
	Begins     []int64 `json:"begins"`
	Begun      int64   `json:"begun"`
	BeforeLost bool    `json:"before_lost,omitempty"`
	BeforeEnds []int64 `json:"before_ends,omitempty"`
}

const (
	version = 1
	// endsVersion is that of records with the ends of the epoch before.
	endsVersion = 2
	// maxEpoch is a number of four digits.
	maxEpoch = 9999
	suffix   = ".json"
	// noID is how an identity of zero bits prints: brokers that give topics no identity say so.
	noID = "AAAAAAAAAAAAAAAAAAAAAA"
)

func objectName(epoch uint64) string {
	return fmt.Sprintf("%s%04d%s", catalog.TopicPrefix, epoch, suffix)
}

// Check returns an error of class invalid unless the epoch makes sense by itself.
func (e *Epoch) Check() error {
	err := checkPartitions(e.Partitions)
	switch {
	case err != nil:
	case e.Number < 1 || e.Number > maxEpoch:
		err = fmt.Errorf("number %d", e.Number)
	case e.Topic == "" || e.ID == "" || e.ID == noID:
		err = errors.New("it names no topic")
	case len(e.Begins) != int(e.Partitions):
		err = fmt.Errorf("%d offsets for %d partitions", len(e.Begins), e.Partitions)
	case slices.Min(e.Begins) < 0:
		err = errors.New("a partition begins at a negative offset")
	case len(e.BeforeEnds) > 0 && (e.BeforeLost || e.Number == 1 || checkPartitions(int32(len(e.BeforeEnds))) != nil || slices.Min(e.BeforeEnds) < 0):
		err = errors.New("it says where the epoch before ends, which is lost or not there, or ends at a negative offset")
	}
	if err != nil {
		return fmt.Errorf("epoch %d of topics: %w: %w", e.Number, model.ErrInvalid, err)
	}
	return nil
}

// List returns the epochs in their order.
func List(ctx context.Context, b catalog.Reader) ([]Epoch, error) {
	var all []Epoch
	var names []string
	err := b.List(ctx, catalog.TopicPrefix, func(name string, _ int64) error {
		names = append(names, name)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("epochs of topics: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		data, err := b.Get(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		e, err := parse(name, data)
		if err != nil {
			return nil, err
		}
		if e.Number != uint64(len(all)+1) {
			return nil, fmt.Errorf("%s: %w: epoch %d is missing before it", name, model.ErrCorrupt, len(all)+1)
		}
		if last := Latest(all); last != nil && len(e.BeforeEnds) > 0 && len(e.BeforeEnds) != int(last.Partitions) {
			return nil, fmt.Errorf("%s: %w: it has the ends of %d partitions, and epoch %d has %d", name, model.ErrCorrupt, len(e.BeforeEnds), last.Number, last.Partitions)
		}
		all = append(all, *e)
	}
	return all, nil
}

// Next returns the epoch after a number, or nil if none is recorded. It costs one request.
func Next(ctx context.Context, b catalog.Reader, after uint64) (*Epoch, error) {
	name := objectName(after + 1)
	data, err := b.Get(ctx, name)
	if errors.Is(err, bucket.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return parse(name, data)
}

// Latest returns the epoch that takes writes, or nil.
func Latest(all []Epoch) *Epoch {
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// OfID returns the epoch of the topic with an identity, or nil.
func OfID(all []Epoch, id string) *Epoch {
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}

// End returns the offset at which a partition of an epoch ends, once a later epoch is recorded that says so.
func End(all []Epoch, epoch uint64, partition int32) (end int64, ok bool) {
	if epoch < 1 || epoch >= uint64(len(all)) {
		return 0, false
	}
	ends := all[epoch].BeforeEnds
	if partition < 0 || int(partition) >= len(ends) {
		return 0, false
	}
	return ends[partition], true
}

// ErrTaken says that another process has recorded an epoch with the same number. It is joined by class
// transient.
var ErrTaken = errors.New("another process has recorded this epoch")

// Follows returns an error of class invalid unless a topic may be that of the next epoch. all are those that
// [List] has returned.
func Follows(all []Epoch, e *Epoch) error {
	// An ended epoch counts too: what its topic has was shipped, and would be shipped again.
	if other := OfID(all, e.ID); other != nil {
		return fmt.Errorf("topic %s: %w: it is that of epoch %d already", e.Topic, model.ErrInvalid, other.Number)
	}
	last := Latest(all)
	if last == nil {
		return nil
	}
	if e.Partitions != last.Partitions && e.Partitions != 2*last.Partitions {
		return fmt.Errorf("topic %s: %w: it has %s, and epoch %d has %d: the next one has as many, or twice as many",
			e.Topic, model.ErrInvalid, english.Plural(int(e.Partitions), "partition", ""), last.Number, last.Partitions)
	}
	return nil
}

// Add records the next epoch. all are those that [List] has returned. If the epoch before is not lost, its
// topic must take no more records.
func Add(ctx context.Context, b bucket.Bucket, all []Epoch, e Epoch) (Epoch, error) {
	e.Number = uint64(len(all) + 1)
	if e.Begun == 0 {
		e.Begun = time.Now().UnixNano()
	}
	if err := e.Check(); err != nil {
		return e, err
	}
	if err := Follows(all, &e); err != nil {
		return e, err
	}
	if last := Latest(all); last != nil && !e.BeforeLost && len(e.BeforeEnds) != int(last.Partitions) {
		return e, fmt.Errorf("epoch %d of topics: %w: it does not say where the %d partitions of epoch %d end", e.Number, model.ErrInvalid, last.Partitions, last.Number)
	}
	if err := unused(ctx, b, e.Number); err != nil {
		return e, err
	}
	v := version
	if len(e.BeforeEnds) > 0 {
		v = endsVersion
	}
	data, err := json.Marshal(record{v, e.Number, e.Topic, e.ID, e.Partitions, e.Begins, e.Begun, e.BeforeLost, e.BeforeEnds})
	if err != nil {
		return e, fmt.Errorf("epoch %d of topics: %w: %w", e.Number, model.ErrInvalid, err)
	}
	data = checksum.Seal(append(data, '\n'))
	name := objectName(e.Number)
	created, err := b.PutIfAbsent(ctx, name, data)
	if err == nil && created {
		return e, nil
	}
	// The response may have been lost, and the request been repeated.
	stored, e2 := b.Get(ctx, name)
	switch {
	case e2 == nil && bytes.Equal(stored, data):
		return e, nil
	case err != nil:
		return e, fmt.Errorf("%s: %w", name, err)
	case e2 != nil:
		return e, fmt.Errorf("%s: %w", name, e2)
	}
	return e, fmt.Errorf("%s: %w: %w", name, model.ErrTransient, ErrTaken)
}

// Writable returns an error unless epochs may be recorded. It repeats the request that has recorded an epoch,
// which changes nothing.
func Writable(ctx context.Context, b bucket.Bucket, e *Epoch) error {
	name := objectName(e.Number)
	data, err := b.Get(ctx, name)
	if err == nil {
		_, err = b.PutIfAbsent(ctx, name, data)
	}
	if err != nil {
		return fmt.Errorf("nothing is changed: writing to the bucket: %s: %w", name, err)
	}
	return nil
}

// unused returns an error if ships have covered partitions of an epoch. Then its object was deleted, and
// offsets of another topic would be taken for shipped.
func unused(ctx context.Context, b catalog.Reader, epoch uint64) error {
	records, err := catalog.ReadStored(ctx, b)
	if err != nil {
		return err
	}
	for i := range records {
		for _, v := range records[i].Covered {
			if v.Epoch >= epoch && v.Epoch <= maxEpoch {
				return fmt.Errorf("epoch %d of topics: %w: %s covers partition %s of epoch %d, whose object %s is missing; put it back",
					epoch, model.ErrCorrupt, records[i].Name(), v.Node, v.Epoch, objectName(v.Epoch))
			}
		}
	}
	return nil
}

func parse(name string, data []byte) (*Epoch, error) {
	fail := func(class error, format string, args ...any) (*Epoch, error) {
		return nil, fmt.Errorf("%s: %w: %w", name, class, fmt.Errorf(format, args...))
	}
	body, err := checksum.Unseal(data)
	if err != nil {
		return fail(model.ErrCorrupt, "%w", err)
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return fail(model.ErrCorrupt, "%w", err)
	}
	if v.Version != version && v.Version != endsVersion {
		return fail(model.ErrInvalid, "unknown version %d, this program reads versions %d and %d", v.Version, version, endsVersion)
	}
	var r record
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return fail(model.ErrCorrupt, "%w", err)
	}
	number, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(name, catalog.TopicPrefix), suffix), 10, 64)
	if err != nil || number != r.Epoch || objectName(number) != name {
		return fail(model.ErrCorrupt, "the record is that of epoch %d", r.Epoch)
	}
	if (len(r.BeforeEnds) > 0) != (v.Version == endsVersion) {
		return fail(model.ErrCorrupt, "version %d does not fit what it says of the epoch before", v.Version)
	}
	e := &Epoch{r.Epoch, r.Topic, r.TopicID, r.Partitions, r.Begins, r.Begun, r.BeforeLost, r.BeforeEnds}
	if err := e.Check(); err != nil {
		return fail(model.ErrCorrupt, "%w", err)
	}
	return e, nil
}
