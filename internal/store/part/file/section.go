package file

// Section is a kind of data pages, each with an index of its own. Sections are compared by address.
type Section struct {
	// Number is the position of the section's index in the footer.
	Number int
	// Kind and family are the two bytes by which the section is known in the file. The family is that of its
	// rows, and 0 if it holds none.
	Kind, Family byte
	Name         string
	// Form says what the index holds about each page.
	Form entryForm
	// Optional says that version 3 of the format brought the section. A part without pages of it is written
	// as version 2, so that programs that do not know it can read the part.
	Optional bool
	// Needed reports whether a part has pages of the section for all its ranks. Where it returns false there
	// are none. Sections that list pages only where there is something to store have nil.
	Needed func(*Meta) bool
}

// entryForm is what an index entry holds besides the address of a page.
type entryForm uint8

const (
	// RankEntries hold the ranks that the page covers. Pages leave no gap between them.
	RankEntries entryForm = iota
	// KeyEntries hold ranks and the first key.
	KeyEntries
	// RowEntries hold ranks, and the number and the times of the rows. Pages may leave ranks out, and a
	// series that fills a page goes on in the next.
	RowEntries
	// UnitEntries are rowEntries of units of text, with the addresses of their other pages.
	UnitEntries
	// PairEntries hold a tenant and the first name and value.
	PairEntries
)

// String returns the name of the section.
func (s *Section) String() string { return s.Name }

// rows reports whether the section holds rows.
func (s *Section) rows() bool { return s.Form == RowEntries || s.Form == UnitEntries }

// stored returns the two bytes by which the section is known in the file.
func (s *Section) stored() [2]byte { return [2]byte{s.Kind, s.Family} }

// RowKind is the kind of all sections of rows; the family tells them apart.
const RowKind byte = 3

// Sections lists the sections of a file by their numbers, the optional ones last.
type Sections []*Section

// of returns the sections that the footer of a version lists.
func (l Sections) of(version uint32) Sections {
	for i, s := range l {
		if s.Optional && version < FormatVersion {
			return l[:i]
		}
	}
	return l
}

const (
	// MaxPageRows bounds the rows of a page.
	MaxPageRows = 1 << 16
	// MaxPageRanks bounds the series of a page, and so what a query pays for the directory of a page of which
	// it wants one series.
	MaxPageRanks = 1 << 14
)
