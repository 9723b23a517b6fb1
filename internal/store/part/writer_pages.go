package part

// textCodec is the codec of pages that are text, or lists.
func (p *Writer) textCodec() byte {
	if p.o.Level == Dense {
		return codecZstd
	}
	return codecS2
}

// numberCodec is the codec of pages of samples, whose columns are packed already.
func (p *Writer) numberCodec() byte {
	if p.o.Level == Dense {
		return codecZstd
	}
	return codecNone
}

// page writes p.payload and returns its place.
func (p *Writer) page(codec byte) (Addr, error) {
	if len(p.payload) > maxPageBytes {
		return Addr{}, invalid("page of %d bytes", len(p.payload))
	}
	var err error
	if p.stored, err = sealPage(p.stored[:0], p.payload, codec); err != nil {
		return Addr{}, err
	}
	return p.place(p.stored)
}

// place writes a stored page.
func (p *Writer) place(stored []byte) (Addr, error) {
	if p.off == 0 {
		if err := p.write([]byte(header)); err != nil {
			return Addr{}, err
		}
	}
	a := Addr{Off: p.off, Len: uint32(len(stored))}
	return a, p.write(stored)
}

// indexed enters a page in the index of its section.
func (p *Writer) indexed(s section, e pageEntry) error {
	x := &p.index[s]
	x.add(e)
	if x.full(p.sizes.index) {
		return p.flushIndex(x)
	}
	return nil
}

func (p *Writer) flushIndex(x *indexWriter) error {
	if x.count == 0 {
		return nil
	}
	p.payload = x.payload(p.payload[:0])
	a, err := p.page(p.textCodec())
	if err == nil {
		x.sealed(a)
	}
	return err
}

func (p *Writer) flushKeys() error {
	if p.keys.count == 0 {
		return nil
	}
	p.payload = p.keys.payload(p.payload[:0])
	a, err := p.page(codecNone)
	if err != nil {
		return err
	}
	e := pageEntry{addr: a, rank0: p.keys.rank0, ranks: uint32(p.keys.count), key: p.keys.first}
	p.keys.count = 0
	return p.indexed(keySection, e)
}

func (p *Writer) flushLabels() error {
	if p.labels.count == 0 {
		return nil
	}
	p.payload = p.labels.payload(p.payload[:0])
	a, err := p.page(p.textCodec())
	if err != nil {
		return err
	}
	e := pageEntry{addr: a, rank0: p.labels.rank0, ranks: uint32(p.labels.count)}
	p.labels.count = 0
	return p.indexed(labelSection, e)
}

func (p *Writer) flushSamples() error {
	s := &p.samples
	if s.empty() {
		return nil
	}
	p.payload = s.payload(p.payload[:0])
	a, err := p.page(p.numberCodec())
	if err != nil {
		return err
	}
	e := pageEntry{addr: a, rank0: s.rank0, ranks: uint32(len(s.counts)), rows: uint64(s.rows), times: s.times}
	s.reset()
	return p.indexed(sampleSection, e)
}

func (p *Writer) flushExemplars() error {
	x := &p.exemplars
	if x.empty() {
		return nil
	}
	p.payload = x.payload(p.payload[:0])
	a, err := p.page(p.textCodec())
	if err != nil {
		return err
	}
	e := pageEntry{addr: a, rank0: x.rank0, ranks: uint32(len(x.counts)), rows: uint64(len(x.times)), times: x.span}
	x.reset()
	return p.indexed(exemplarSection, e)
}

func (p *Writer) flushMasks() error {
	m := &p.masks
	if len(m.masks) == 0 {
		return nil
	}
	p.payload = m.payload(p.payload[:0], &p.samples.ints)
	a, err := p.page(p.textCodec())
	if err != nil {
		return err
	}
	e := pageEntry{addr: a, rank0: m.rank0, ranks: uint32(len(m.masks))}
	m.masks = m.masks[:0]
	return p.indexed(windowSection, e)
}

// flushPostings writes the postings of the current tenant and forgets them.
func (p *Writer) flushPostings() error {
	page := postingPage{tenant: uint32(len(p.footer.meta.Tenants) - 1)}
	for _, o := range p.postings.sorted() {
		s := p.postings.pairs.at(o.id)
		p.list = p.postings.ranks(p.list[:0], s)
		err := cutList(p.list, &p.piece, s.first, p.sizes.list, func(count, first uint32, list []byte) error {
			page.add(p.postings.name(s), p.postings.value(s), count, first, list)
			if page.full(p.sizes.page) {
				return p.flushPostingPage(&page)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := p.flushPostingPage(&page)
	p.postings.reset()
	return err
}

func (p *Writer) flushPostingPage(page *postingPage) error {
	if page.count == 0 {
		return nil
	}
	p.payload = page.payload(p.payload[:0])
	a, err := p.page(p.textCodec())
	if err != nil {
		return err
	}
	page.count = 0
	return p.indexed(postingSection, pageEntry{addr: a, tenant: page.tenant, name: page.firstName, value: page.first})
}
