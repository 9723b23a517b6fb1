package part

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// Dump writes every byte of the part with its meaning: first the stored bytes of header, page envelopes and
// tail at their offsets in the file, and below each page its payload, decompressed, at offsets in the
// payload. A page that cannot be read is noted with its error, and the dump goes on.
func Dump(ctx context.Context, w io.Writer, r *Reader) error {
	out := bufio.NewWriter(w)
	d := dumper{ctx: ctx, r: r.Reader, w: out}
	if err := d.part(); err != nil {
		return err
	}
	return out.Flush()
}

type dumper struct {
	ctx context.Context
	r   *file.Reader
	w   *bufio.Writer
}

type dumpPage struct {
	addr  file.Addr
	title string
	show  func(a *file.Annotator)
}

func (d *dumper) part() error {
	r := d.r
	fmt.Fprintf(d.w, "part of %d bytes, format version %d\n", r.Size(), r.Version())
	pages, err := d.pages()
	if err != nil {
		return err
	}
	head, err := r.Read(d.ctx, 0, file.HeaderBytes)
	if err != nil {
		return err
	}
	file.ShowBytes(d.w, "", 0, head, "header %q", head)
	for i := range pages {
		if err := d.page(&pages[i]); err != nil {
			return err
		}
	}
	n := r.Size() - file.TailBytes - r.FooterOff()
	stored, err := r.Read(d.ctx, r.FooterOff(), n)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "\nfooter at %d\n", r.FooterOff())
	file.DumpEnvelope(d.w, r.FooterOff(), stored)
	payload, err := file.OpenPage(stored, file.MaxFooterBytes)
	if err != nil {
		return err
	}
	file.DumpFooter(file.NewAnnotator(d.w, payload), d.r, sections)
	tail, err := r.Read(d.ctx, r.Size()-file.TailBytes, file.TailBytes)
	if err != nil {
		return err
	}
	at := r.Size() - file.TailBytes
	fmt.Fprintf(d.w, "\ntail at %d\n", at)
	file.ShowBytes(d.w, "", at, tail[:4], "length of the stored footer: %d", n)
	file.ShowBytes(d.w, "", at+4, tail[4:8], "version %d", r.Version())
	file.ShowBytes(d.w, "", at+8, tail[8:12], "crc32c of the eight bytes before")
	file.ShowBytes(d.w, "", at+12, tail[12:], "magic %q", tail[12:])
	return nil
}

// pages lists all pages in the order of their offsets, without those that a corrupt index page would name.
func (d *dumper) pages() ([]dumpPage, error) {
	var pages []dumpPage
	seen := map[file.Addr]bool{}
	for _, f := range families {
		for i := range d.r.Index(f.section) {
			pages = append(pages, dumpPage{d.r.Index(f.section)[i].Addr, "index page of " + f.section.Name, func(a *file.Annotator) { file.DumpIndex(a, f.section, d.r.FooterOff()) }})
			entries, err := d.r.Entries(d.ctx, nil, f.section, i)
			switch {
			case errors.Is(err, model.ErrCorrupt):
				fmt.Fprintf(d.w, "index page of %s: %v\n", f.section, err)
				continue
			case err != nil:
				return nil, err
			}
			for k := range entries {
				e := &entries[k]
				pages = append(pages, dumpPage{e.Addr, "page of " + f.section.Name, f.dump})
				if f.pages == nil {
					continue
				}
				extra, _ := f.pages(d.ctx, d.r.Pages(), seen, e) // the dump of the page shows what is wrong
				for _, x := range extra {
					pages = append(pages, dumpPage{x.Addr, "page of " + x.Name, x.Dump})
				}
			}
		}
	}
	slices.SortFunc(pages, func(a, b dumpPage) int { return cmp.Compare(a.addr.Off, b.addr.Off) })
	return pages, nil
}

func (d *dumper) page(p *dumpPage) error {
	fmt.Fprintf(d.w, "\n%s at %d\n", p.title, p.addr.Off)
	stored, err := d.r.Read(d.ctx, p.addr.Off, int64(p.addr.Len))
	if err != nil {
		return err
	}
	file.DumpEnvelope(d.w, p.addr.Off, stored)
	lines.Dump(d.w, stored)
	payload, err := lines.DecodePage(stored)
	if err != nil {
		fmt.Fprintf(d.w, "  %v\n", err)
		return nil
	}
	a := file.NewAnnotator(d.w, payload)
	p.show(a)
	a.End()
	return nil
}
