package part

// Section is a kind of data pages, each with an index of its own. Sections are compared by address.
type section struct {
	// number is the position of the section's index in the footer.
	number int
	// kind and family are the two bytes by which the section is known in the file. The family is that of its rows, and 0
	// if it holds none.
	kind, family byte
	name         string
	// form says what the index holds about each page.
	form entryForm
	// needed reports whether a part has pages of the section for all its ranks. Where it returns false there are none.
	// Sections that list pages only where there is something to store have nil.
	needed func(*Meta) bool
}

// entryForm is what an index entry holds besides the address of a page.
type entryForm uint8

const (
	// rankEntries hold the ranks that the page covers. Pages leave no gap between them.
	rankEntries entryForm = iota
	// keyEntries hold ranks and the first key.
	keyEntries
	// rowEntries hold ranks, and the number and the times of the rows. Pages may leave ranks out, and a series that fills a
	// page goes on in the next.
	rowEntries
	// unitEntries are rowEntries of units of text, with the addresses of their other pages.
	unitEntries
	// pairEntries hold a tenant and the first name and value.
	pairEntries
)

func (s *section) String() string { return s.name }

// rows reports whether the section holds rows.
func (s *section) rows() bool { return s.form == rowEntries || s.form == unitEntries }

// stored returns the two bytes by which the section is known in the file.
func (s *section) stored() [2]byte { return [2]byte{s.kind, s.family} }

// rowKind is the kind of all sections of rows; the family tells them apart.
const rowKind byte = 3

// sectionList lists the sections of a file by their numbers.
type sectionList []*section

const (
	// maxPageRows bounds the rows of a page.
	maxPageRows = 1 << 16
	// maxPageRanks bounds the series of a page, and so what a query pays for the directory of a page of which it wants one
	// series.
	maxPageRanks = 1 << 14
)
