package series

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// postingWriter writes the postings of one tenant after the other.
type postingWriter struct {
	w           *file.Writer
	postings    postings
	page        postingPage
	list, piece []byte
}

// NewPostingWriter returns the writer of the section, which writes nothing unless the part has labels.
func NewPostingWriter(w *file.Writer) file.Hooks {
	if !w.Meta().Labels {
		return file.Hooks{}
	}
	p := &postingWriter{w: w, postings: newPostings(uint64(w.Meta().Seed))}
	return file.Hooks{BeginSeries: p.begin, EndTenant: p.flush}
}

func (p *postingWriter) begin(_ model.Key, l model.Labels) error {
	return p.postings.add(p.w.Rank()-p.w.Tenant().Rank0, l)
}

// flush writes the postings of the current tenant and forgets them.
func (p *postingWriter) flush() error {
	p.page = postingPage{tenant: uint32(len(p.w.Meta().Tenants) - 1)}
	order := p.postings.sorted()
	for _, o := range order {
		s := p.postings.pairs.get(o.id)
		p.list = p.postings.ranks(p.list[:0], s)
		err := cutList(p.list, &p.piece, s.first, p.w.Sizes.ListBytes, func(count, first uint32, list []byte) error {
			p.page.add(p.postings.name(s), p.postings.value(s), count, first, list)
			if p.page.full(p.w.Sizes.PageBytes) {
				return p.flushPage()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := p.flushPage()
	if err == nil {
		err = p.writeTree(order)
	}
	p.postings.reset()
	return err
}

func (p *postingWriter) flushPage() error {
	page := &p.page
	if page.count == 0 {
		return nil
	}
	p.w.Payload = page.payload(p.w.Payload[:0])
	page.count = 0
	return p.w.AddPage(PostingSection, p.w.TextCodec(), file.Entry{Tenant: page.tenant, Name: page.firstName, Value: page.first})
}
