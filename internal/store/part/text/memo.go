package text

import (
	"context"
	"fmt"
	"sync"

	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// memo remembers what the pages of filters say about one query. Many filters share a page, and a query asks
// for the filters of units in the order of time, which returns to each page many times. So a page is read
// once, with the slices that it needs. If there is a cache for lists, it keeps the verdicts for the next
// query with the same filter: they are much smaller than the filters.
type memo struct {
	r     *file.Reader
	rule  *evaluator
	lists file.Lists // nil: no cache for lists
	query [16]byte   // what is asked, in the key of a list

	mu sync.Mutex
	// units counts the filters of the pages that are done, and ruledOut those that rule their unit out.
	units, ruledOut int
}

// verdictPage is what a page of filters says.
type verdictPage struct {
	addr         file.Addr
	opened, once sync.Once
	// head and headErr are there from opened until the page is done, and guarded by memo.mu.
	head    *filterPage
	headErr error
	// done and recalled, which says that the lists have been asked, are guarded by memo.mu.
	done, recalled bool

	// ruledOut is 1 for each filter of the page that rules its unit out. It and err are set once.
	ruledOut []byte
	err      error
}

func newMemo(r *file.Reader, rule *evaluator) *memo {
	m := &memo{r: r, rule: rule}
	if l, ok := r.Pages().(file.Lists); ok {
		m.lists, m.query = l, rule.key()
	}
	return m
}

// rulesOut is for a page that is done.
func (p *verdictPage) rulesOut(number uint32) bool {
	return p.err == nil && int(number) < len(p.ruledOut) && p.ruledOut[number] != 0
}

// known reports whether it is known what a page says.
func (m *memo) known(p *verdictPage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recallLocked(p)
	return p.done
}

// recallLocked takes the verdicts of an earlier query about a page from the cache.
func (m *memo) recallLocked(p *verdictPage) {
	if p.recalled || p.done || m.lists == nil {
		return
	}
	p.recalled = true
	if list, ok := m.lists.Kept(m.key(p)); ok {
		m.setLocked(p, list, nil)
	}
}

func (m *memo) setLocked(p *verdictPage, ruledOut []byte, err error) {
	p.ruledOut, p.err, p.done = ruledOut, err, true
	p.head = nil
	m.units += len(ruledOut)
	for _, x := range ruledOut {
		m.ruledOut += int(x)
	}
}

func (m *memo) key(p *verdictPage) file.ListKey {
	return file.ListKey{Off: p.addr.Off, Query: m.query}
}

// decide reads the verdicts of a page, unless they are known. Of concurrent callers, one reads.
func (m *memo) decide(ctx context.Context, p *verdictPage) {
	m.mu.Lock()
	done := p.done
	m.mu.Unlock()
	if done {
		return
	}
	var ruledOut []byte
	var err error
	read := func(ctx context.Context) ([]byte, error) { return m.read(ctx, p) }
	if m.lists != nil {
		ruledOut, err = m.lists.List(ctx, m.key(p), read)
	} else {
		ruledOut, err = read(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setLocked(p, ruledOut, err)
}

// openHead returns the head of a page, or nil if it is no longer needed.
func (m *memo) openHead(ctx context.Context, p *verdictPage) (*filterPage, error) {
	p.opened.Do(func() {
		head := new(filterPage)
		payload, err := m.r.Page(ctx, p.addr)
		if err != nil {
			err = fmt.Errorf("part: filters: %w", err)
		} else {
			err = head.decode(payload, p.addr)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		p.head, p.headErr = head, err
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.head, p.headErr
}

// read reads a page of filters and the slices that are needed.
func (m *memo) read(ctx context.Context, p *verdictPage) ([]byte, error) {
	head, err := m.openHead(ctx, p)
	if err != nil {
		return nil, err
	}
	var read [lines.FilterParts][]byte // what many items need is asked for once
	return m.rule.ruledOut(head, func(i int) ([]byte, error) {
		if read[i] == nil {
			if read[i], err = head.readSlice(ctx, m.r.Pages(), i); err != nil {
				return nil, err
			}
		}
		return read[i], nil
	})
}
