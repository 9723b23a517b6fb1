package part

import "encoding/binary"

const (
	// maxFilters bounds the filters of a page.
	maxFilters = 1 << 12
	// filterBytes is how many bytes of filters a writer holds, whose pages then lie side by side.
	filterBytes = 4 << 20
)

// appendFilterPage makes the payload of a page of those filters that begin at begin and of which each ends where ends says.
func appendFilterPage(dst, filters []byte, begin uint32, ends []uint32) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ends)))
	from := begin
	for _, end := range ends {
		dst = binary.AppendUvarint(dst, uint64(end-from))
		from = end
	}
	return append(dst, filters[begin:from]...)
}

// filterPage is a page of filters.
type filterPage struct {
	ends    []uint32
	filters []byte
}

func (p *filterPage) open(payload []byte) error {
	s := scan{b: payload}
	n := s.below(maxFilters)
	p.ends = p.ends[:0]
	end := uint64(0)
	for range n {
		end += uint64(s.below(maxPageBytes))
		p.ends = append(p.ends, uint32(end))
		if s.bad {
			break
		}
	}
	p.filters = s.take(end)
	return s.end("page of filters")
}

func (p *filterPage) at(i uint32) ([]byte, error) {
	if int(i) >= len(p.ends) {
		return nil, corrupt("page of filters has no filter %d", i)
	}
	begin := uint32(0)
	if i > 0 {
		begin = p.ends[i-1]
	}
	return p.filters[begin:p.ends[i]:p.ends[i]], nil
}
