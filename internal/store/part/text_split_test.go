package part

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/text"
)

type textSplitter interface {
	ReadTextSplit(ctx context.Context, index int, dst *model.TextRows) (*model.SplitText, int, error)
}

// TestReadSplit reads chunks split, and then their lines and metadata: also of units whose lines are all
// empty, which have no page of lines but may have a filter, of their metadata.
func TestReadSplit(t *testing.T) {
	for name, rows := range map[string][]textRow{
		"empty": spans(30_000, ""), "one is not": append(spans(30_000, ""), textRow{t: 30_000, line: "x"}),
		"others": randomText(rand.New(rand.NewPCG(1, 1)), 0, 5000, true),
	} {
		r := writeText(t, []textSeries{{tenant: "t", labels: model.LabelsOf("a", "b"), rows: rows}}, logOptions(true, Dense), formatSizes)
		req := &model.Request{Range: model.Always(), Quota: &model.Quota{MaxBytes: 1 << 30, Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{}}
		chunks, err := r.TextAt(context.Background(), req, nil, 7, unnamed).Chunks(context.Background(), 0, nil)
		parttest.Must(t, err)
		var got []textRow
		split := 0
		for _, c := range chunks {
			var dst, whole model.TextRows
			s, first, err := c.Page.(textSplitter).ReadTextSplit(context.Background(), c.Index, &dst)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			parttest.Must(t, c.Page.ReadText(context.Background(), c.Index, model.WantLines|model.WantMetadata, &whole))
			if s != nil {
				if split++; first+c.Rows > len(s.Ends) {
					t.Errorf("%s: lines %d to %d of %d", name, first, first+c.Rows, len(s.Ends))
				}
			}
			for k := range dst.Times {
				if lengthOf(&dst, k) != lengthOf(&whole, k) {
					t.Fatalf("%s: line %d has %d bytes, should be %d", name, k, lengthOf(&dst, k), lengthOf(&whole, k))
				}
				got = append(got, textRow{dst.Times[k], string(whole.Line(k)), string(whole.MetadataAt(k))})
			}
			c.Page.Release()
		}
		if !slices.Equal(got, rows) {
			t.Errorf("%s: %d rows, should be %d", name, len(got), len(rows))
		}
		if name == "others" && split == 0 {
			t.Error("no chunk is read split")
		}
		if left := req.Quota.Charged(); left != (model.Charge{}) {
			t.Errorf("%s: still charged: %+v", name, left)
		}
	}
}

// keeping is a cache that keeps everything.
type keeping map[cache.Key][]byte

func (c keeping) Get(ctx context.Context, k cache.Key, load func(context.Context) ([]byte, error)) ([]byte, bool, error) {
	if v, ok := c[k]; ok {
		return v, true, nil
	}
	v, err := load(ctx)
	if err == nil {
		c[k] = v
	}
	return v, false, err
}

func (c keeping) Peek(k cache.Key) ([]byte, bool) { v, ok := c[k]; return v, ok }

func (c keeping) Has(k cache.Key) bool { _, ok := c[k]; return ok }

// TestDamagedStored: a page that is damaged on its way is not kept.
func TestDamagedStored(t *testing.T) {
	page, err := file.SealPage(nil, bytes.Repeat([]byte("line "), 1000), file.CodecZstd)
	parttest.Must(t, err)
	damaged := bytes.Clone(page)
	damaged[len(page)/2] ^= 1
	var hits atomic.Int64
	stored := damaged
	p := NewCachedPages(keeping{}, "object", func(_ context.Context, _ Addr, decode file.Decoder) ([]byte, error) { return decode(stored) }, &hits)
	var pages text.StoredPages = p
	if _, err := pages.Stored(context.Background(), Addr{Len: uint32(len(page))}); !errors.Is(err, model.ErrCorrupt) {
		t.Errorf("a damaged page: %v", err)
	}
	stored = page
	if got, err := pages.Stored(context.Background(), Addr{Len: uint32(len(page))}); err != nil || !bytes.Equal(got, page) {
		t.Errorf("the page, read a second time: %v", err)
	}
	if got, err := p.Page(context.Background(), Addr{Len: uint32(len(page))}); err != nil || len(got) != 5000 || hits.Load() != 1 {
		t.Errorf("the page, decoded: %v, %d hits", err, hits.Load())
	}
}
