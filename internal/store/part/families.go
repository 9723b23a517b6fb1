package part

import (
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/samples"
	"github.com/shaledb/shale/internal/store/part/series"
	"github.com/shaledb/shale/internal/store/part/text"
)

// family is a section of parts with all that the container asks of it. Only writer must be there.
type family struct {
	section *file.Section
	// writer returns the writer of the section for one part.
	writer func(p *Writer) file.Hooks
	// pages lists the pages of an entry that are not in the index, for the check and the dump.
	pages file.ExtraPages
	// check verifies what the index says about the pages of the section, and what can be verified of them by
	// themselves.
	check func(c *file.Checking) error
	// dump shows the payload of a page.
	dump func(a *file.Annotator)
}

// families is the one list of what a part is made of, in the order in which the pages of a tenant are
// written. A new section is a package and a line here.
var families = [...]family{
	{section: series.KeySection, writer: func(p *Writer) file.Hooks { return series.NewKeyWriter(p.file) }, dump: series.DumpKeys},
	{section: series.LabelSection, writer: func(p *Writer) file.Hooks { return series.NewLabelWriter(p.file) }, dump: series.DumpLabels},
	{section: samples.Section, writer: newSamples, check: samples.CheckSampleTimes, dump: samples.DumpSamples},
	{section: samples.ExemplarSection, writer: newExemplars, check: samples.CheckExemplarTimes, dump: samples.DumpExemplars},
	{section: text.Section, writer: newText, pages: text.ListPages, check: text.Check, dump: text.Dump},
	{section: series.WindowSection, writer: func(p *Writer) file.Hooks { return series.NewMaskWriter(p.file) }, dump: series.DumpMasks},
	{section: series.PostingSection, writer: func(p *Writer) file.Hooks { return series.NewPostingWriter(p.file) }, check: series.CheckPostings, dump: series.DumpPostings},
	// The writer of postings writes trees: it has the names in order.
	{section: series.TreeSection, writer: func(*Writer) file.Hooks { return file.Hooks{} }, check: series.CheckTrees, dump: series.DumpTree},
}

// sections are those of the families, by their numbers.
var sections = func() file.Sections {
	l := make(file.Sections, len(families))
	for _, f := range families {
		l[f.section.Number] = f.section
	}
	return l
}()

func newText(p *Writer) file.Hooks {
	p.text = text.NewWriter(p.file)
	return p.text.Hooks()
}

func newSamples(p *Writer) file.Hooks {
	p.samples = samples.NewWriter(p.file)
	return p.samples.Hooks()
}

func newExemplars(p *Writer) file.Hooks {
	p.exemplars = samples.NewExemplarWriter(p.file)
	return p.exemplars.Hooks()
}
