package selection

import (
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// countedPage counts its releases.
type countedPage struct {
	model.TextPage
	released int
}

func (p *countedPage) Release() { p.released++ }

// cutPage is a page without some rows, as deletions make them for a chunk.
type cutPage struct{ model.TextPage }

func (p *cutPage) Inside() model.TextPage { return p.TextPage }

// TestPagesInside: a page stays while a chunk of it is read, whoever is done with another chunk of it that
// has lost rows.
func TestPagesInside(t *testing.T) {
	page := &countedPage{}
	l := newLayout(defaultMergeBytes)
	for i, p := range []model.TextPage{page, &cutPage{page}, &cutPage{page}} {
		at := int64(i)
		l.addStream(int32(i), []model.TextChunk{{TimeRange: model.TimeRange{Min: at, Max: at}, Rows: 1, Page: p}}, model.TimeRange{Max: 10})
	}
	if len(l.pages) != 1 {
		t.Fatalf("%d pages, should be 1", len(l.pages))
	}
	held := pages{all: l.pages, max: 1 << 20}
	held.use(0)
	held.use(l.pageOf[1])
	held.done(l.pageOf[1])
	held.forget(l.pageOf[1], 3)
	if page.released != 0 {
		t.Error("the page was released while it was being read")
	}
	if held.done(0); page.released != 1 {
		t.Errorf("the page was released %d times at the end", page.released)
	}
}
