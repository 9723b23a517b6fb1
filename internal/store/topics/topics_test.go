package topics

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
)

func newBucket(t *testing.T) bucket.Bucket {
	t.Helper()
	b, err := bucketfs.New(vfs.NewMem(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func epoch(topic string, partitions int32) Epoch {
	return Epoch{Topic: topic, ID: "id of " + topic, Partitions: partitions, Begins: make([]int64, partitions), Begun: 7}
}

// after says where the partitions of the epoch before end.
func after(e Epoch, before int) Epoch {
	e.BeforeEnds = make([]int64, before)
	for i := range e.BeforeEnds {
		e.BeforeEnds[i] = int64(10 * i)
	}
	return e
}

var errReadOnly = errors.New("read only")

// readOnly is a bucket whose user may not write.
type readOnly struct{ bucket.Bucket }

func (readOnly) PutIfAbsent(context.Context, string, []byte) (bool, error) { return false, errReadOnly }

// Series keep their partition while partitions are not doubled, and then go to one of two.
func TestParents(t *testing.T) {
	for _, test := range []struct {
		partition, before, next int32
		want                    []int32
	}{
		{0, 1, 1, []int32{0}}, {3, 4, 4, []int32{3}}, {7, 4, 8, []int32{3}}, {3, 4, 8, []int32{3}}, {1, 4, 2, []int32{1, 3}},
	} {
		got := Parents(test.partition, test.before, test.next)
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%+v: got %v", test, got)
		}
	}
	for lo := range uint64(1000) {
		k := model.Key{Hi: lo, Lo: lo * 0x9e3779b97f4a7c15}
		for bits := range 7 {
			before, next := int32(1)<<bits, int32(2)<<bits
			if parents := Parents(PartitionOf(k, next), before, next); len(parents) != 1 || parents[0] != PartitionOf(k, before) {
				t.Fatalf("%s: partition %d of %d has the parents %v of %d", k, PartitionOf(k, next), next, parents, before)
			}
		}
	}
}

// Epochs are read as they were added, and only those that make sense follow.
func TestAddAndList(t *testing.T) {
	ctx, b := t.Context(), newBucket(t)
	var all []Epoch
	for _, e := range []Epoch{epoch("a", 4), after(epoch("b", 8), 4), after(epoch("c", 8), 8)} {
		e, err := Add(ctx, b, all, e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	unnamed := epoch("e", 8)
	if unnamed.ID = "AAAAAAAAAAAAAAAAAAAAAA"; unnamed.Check() == nil {
		t.Error("a topic without an identity is taken")
	}
	for _, want := range []struct {
		epoch     uint64
		partition int32
		end       int64
		ok        bool
	}{{1, 3, 30, true}, {2, 7, 70, true}, {1, 4, 0, false}, {3, 0, 0, false}, {0, 0, 0, false}} {
		if end, ok := End(all, want.epoch, want.partition); end != want.end || ok != want.ok {
			t.Errorf("%+v: got %d, %t", want, end, ok)
		}
	}
	if err := Writable(ctx, b, &all[2]); err != nil {
		t.Error(err)
	}
	if err := Writable(ctx, readOnly{b}, &all[2]); !errors.Is(err, errReadOnly) {
		t.Errorf("a bucket that may not be written: got %v", err)
	}
	got, err := List(ctx, b)
	if err != nil || !reflect.DeepEqual(got, all) {
		t.Fatalf("got %+v, %v, expected %+v", got, err, all)
	}
	negative := epoch("d", 8)
	negative.Begins[3] = -1
	for says, e := range map[string]Epoch{
		"it is that of epoch 3 already": epoch("c", 8), "it is that of epoch 2 already": epoch("b", 8), "as many, or twice as many": epoch("d", 4), "a power of two": epoch("d", 12),
		"a negative offset": negative, "2 offsets for 8 partitions": {Topic: "d", ID: "d", Partitions: 8, Begins: make([]int64, 2)}, "names no topic": {Partitions: 1, Begins: []int64{0}},
		"does not say where the 8 partitions of epoch 3 end": epoch("d", 16), "where the epoch before ends": after(Epoch{Topic: "d", ID: "d", Partitions: 1, Begins: []int64{0}, BeforeLost: true}, 8),
	} {
		if _, err := Add(ctx, b, all, e); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: got %v, expected %q", e, err, says)
		}
	}
	if _, err := Add(ctx, b, all[:2], after(epoch("late", 8), 8)); !errors.Is(err, ErrTaken) || !errors.Is(err, model.ErrTransient) {
		t.Errorf("a process that does not know the last epoch: got %v", err)
	}
}

// The bytes of an object do not change.
func TestGolden(t *testing.T) {
	ctx, b := t.Context(), newBucket(t)
	e := Epoch{Topic: "shale", ID: "Z0QiPvSMSIWJiSmPzyJFCg", Partitions: 2, Begins: []int64{0, 5}, Begun: 1795413600000000000, BeforeLost: true}
	if _, err := Add(ctx, b, nil, e); err != nil {
		t.Fatal(err)
	}
	got, err := b.Get(ctx, "kafka-0001.json")
	if err != nil {
		t.Fatal(err)
	}
	const want = `crc32c 962deb5d
{"version":1,"epoch":1,"topic":"shale","topic_id":"Z0QiPvSMSIWJiSmPzyJFCg","partitions":2,"begins":[0,5],"begun":1795413600000000000,"before_lost":true}
`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
	next := Epoch{Topic: "shale-4", ID: "bznJnhIMSOy6JCmhaznOzA", Partitions: 4, Begins: make([]int64, 4), Begun: 1795413600000000001, BeforeEnds: []int64{7, 9}}
	if _, err := Add(ctx, b, []Epoch{e}, next); err != nil {
		t.Fatal(err)
	}
	if got, err = b.Get(ctx, "kafka-0002.json"); err != nil {
		t.Fatal(err)
	}
	const second = `crc32c ac1b5a78
{"version":2,"epoch":2,"topic":"shale-4","topic_id":"bznJnhIMSOy6JCmhaznOzA","partitions":4,"begins":[0,0,0,0],"begun":1795413600000000001,"before_ends":[7,9]}
`
	if string(got) != second {
		t.Errorf("got %s", got)
	}
}

// Damaged, misplaced and missing objects are errors, and none is passed over.
func TestListDamage(t *testing.T) {
	ctx := t.Context()
	put := func(b bucket.Bucket, name string, data []byte) {
		t.Helper()
		if err := b.Put(ctx, name, strings.NewReader(string(data)), int64(len(data))); err != nil {
			t.Fatal(err)
		}
	}
	b := newBucket(t)
	if _, err := Add(ctx, b, nil, epoch("a", 1)); err != nil {
		t.Fatal(err)
	}
	good, err := b.Get(ctx, objectName(1))
	if err != nil {
		t.Fatal(err)
	}
	body, err := checksum.Unseal(good)
	if err != nil {
		t.Fatal(err)
	}
	replaced := func(from, to string) []byte {
		return checksum.Seal([]byte(strings.Replace(string(body), from, to, 1)))
	}
	for _, test := range []struct {
		name  string
		data  []byte
		class error
	}{
		{objectName(1), []byte(strings.Replace(string(good), `"a"`, `"b"`, 1)), model.ErrCorrupt},
		{objectName(1), replaced(`"version":1`, `"version":2`), model.ErrCorrupt},
		{objectName(1), replaced(`"version":1`, `"version":3`), model.ErrInvalid},
		{objectName(1), replaced(`"epoch":1`, `"epoch":2`), model.ErrCorrupt},
		{objectName(1), replaced(`"partitions":1`, `"partitions":3`), model.ErrCorrupt},
		{objectName(1), replaced(`"begun"`, `"begin"`), model.ErrCorrupt},
		{objectName(3), replaced(`"epoch":1`, `"epoch":3`), model.ErrCorrupt},
		{"kafka-1.json", good, model.ErrCorrupt},
	} {
		b := newBucket(t)
		put(b, test.name, test.data)
		if all, err := List(ctx, b); !errors.Is(err, test.class) {
			t.Errorf("%s: got %v, %v, expected class %v\n%s", test.name, all, err, test.class, test.data)
		}
	}
}

// Exactly one of many processes records an epoch.
func TestAddRace(t *testing.T) {
	ctx, b := t.Context(), newBucket(t)
	var all sync.WaitGroup
	won := make(chan string, 8)
	for i := range 8 {
		all.Go(func() {
			topic := fmt.Sprint("topic", i)
			switch _, err := Add(ctx, b, nil, epoch(topic, 4)); {
			case err == nil:
				won <- topic
			case !errors.Is(err, ErrTaken):
				t.Error(err)
			}
		})
	}
	all.Wait()
	close(won)
	epochs, err := List(ctx, b)
	if err != nil || len(won) != 1 || epochs[0].Topic != <-won {
		t.Errorf("%+v, %v", epochs, err)
	}
}

// lossy loses the response of each conditional put.
type lossy struct{ bucket.Bucket }

func (l lossy) PutIfAbsent(ctx context.Context, name string, data []byte) (bool, error) {
	if _, err := l.Bucket.PutIfAbsent(ctx, name, data); err != nil {
		return false, err
	}
	return l.Bucket.PutIfAbsent(ctx, name, data)
}

// An epoch whose response was lost is known by its bytes.
func TestAddLostResponse(t *testing.T) {
	ctx, b := t.Context(), newBucket(t)
	if _, err := Add(ctx, lossy{b}, nil, epoch("a", 4)); err != nil {
		t.Fatal(err)
	}
	if all, err := List(ctx, b); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A number that ships have covered is not given to another topic: its rows would be taken for shipped.
func TestAddCovered(t *testing.T) {
	ctx, b := t.Context(), newBucket(t)
	c, err := catalog.Open(ctx, b, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	upload := func(context.Context, string) error { return nil }
	if _, err := c.Ship(ctx, catalog.Ship{Covered: []catalog.Coverage{{Node: Node(3), Epoch: 1, From: 1, To: 50}}}, upload); err != nil {
		t.Fatal(err)
	}
	if _, err := Add(ctx, b, nil, epoch("new", 4)); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), "kafka-0001.json is missing") {
		t.Errorf("got %v", err)
	}
}
