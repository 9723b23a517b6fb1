package part

// family is a section of parts with all that the container asks of it. Only writer must be there.
type family struct {
	section *section
	// writer returns the writer of the section for one part.
	writer func(p *Writer) sectionHooks
	// pages lists the pages of an entry that are not in the index, for the check and the dump.
	pages pageLister
	// check verifies what the index says about the pages of the section, and what can be verified of them by themselves.
	check func(c *checking) error
	// dump shows the payload of a page.
	dump func(a *annotator)
}

// families is the one list of what a part is made of, in the order in which the pages of a tenant are written. A new section
// is a package and a line here.
var families = [...]family{
	{section: keySection, writer: func(p *Writer) sectionHooks { return newKeyWriter(p.file) }, dump: dumpKeys},
	{section: labelSection, writer: func(p *Writer) sectionHooks { return newLabelWriter(p.file) }, dump: dumpLabels},
	{section: sampleSection, writer: newSamples, check: checkSampleTimes, dump: dumpSamples},
	{section: exemplarSection, writer: newExemplars, check: checkExemplarTimes, dump: dumpExemplars},
	{section: textSection, writer: newText, pages: unitPages, check: checkUnits, dump: dumpText},
	{section: windowSection, writer: func(p *Writer) sectionHooks { return newMaskWriter(p.file) }, dump: dumpMasks},
	{section: postingSection, writer: func(p *Writer) sectionHooks { return newPostingWriter(p.file) }, check: checkPostings, dump: dumpPostings},
}

// sections are those of the families, by their numbers.
var sections = func() sectionList {
	l := make(sectionList, len(families))
	for _, f := range families {
		l[f.section.number] = f.section
	}
	return l
}()

func newText(p *Writer) sectionHooks {
	p.text = newTextWriter(p.file)
	return p.text.hooks()
}

func newSamples(p *Writer) sectionHooks {
	p.samples = newSampleWriter(p.file)
	return p.samples.hooks()
}

func newExemplars(p *Writer) sectionHooks {
	p.exemplars = newExemplarWriter(p.file)
	return p.exemplars.hooks()
}
