package advise

import "github.com/shaledb/shale/internal/memcache/slab"

// Waste is where the memory of a server goes, in bytes. The parts add up to the pages and Unassigned.
type Waste struct {
	// Items is what the items take themselves.
	Items int64 `json:"items"`
	// InChunks is what chunks have beyond their items, PageEnds what pages have beyond their chunks.
	InChunks int64 `json:"in_chunks"`
	PageEnds int64 `json:"page_ends"`
	// LastPages is free in the last page of each class. Held is free in further pages of a class, which other
	// classes may need: memcached calls such a server calcified.
	LastPages int64 `json:"last_pages"`
	Held      int64 `json:"held"`
	// Unassigned is the memory that no class has yet.
	Unassigned int64        `json:"unassigned"`
	Classes    []ClassWaste `json:"classes"`
}

// ClassWaste is the part of a class. InChunks of the last class has all items that are larger than a chunk,
// in whichever classes their pieces are.
type ClassWaste struct {
	Class
	InChunks  int64 `json:"in_chunks_bytes"`
	PageEnds  int64 `json:"page_ends_bytes"`
	FreeBytes int64 `json:"free_bytes"`
}

// Waste returns where the memory of a server goes.
func (s *Server) Waste() Waste {
	w := Waste{Unassigned: s.Memory}
	estimate := s.estimate()
	large := -1 // index of the last class, in which large items count
	pieces := int64(0)
	for _, c := range s.Classes {
		one := ClassWaste{Class: c}
		area := int64(c.PerPage) * int64(c.ChunkSize)
		one.PageEnds = c.Pages * (slab.Page - area)
		one.FreeBytes = c.Free * int64(c.ChunkSize)
		needed := (c.Used + int64(c.PerPage) - 1) / int64(c.PerPage)
		held := max(0, c.Pages-needed) * area
		w.PageEnds += one.PageEnds
		w.Held += min(held, one.FreeBytes)
		w.LastPages += one.FreeBytes - min(held, one.FreeBytes)
		w.Unassigned -= c.Pages * slab.Page
		switch {
		case estimate != nil:
			one.InChunks = estimate[c.ID]
		case c.ChunkSize == s.Config.ChunkMax:
			large = len(w.Classes)
			pieces += c.Used * int64(c.ChunkSize)
		default:
			own := min(c.Items, c.Used)
			one.InChunks = max(0, own*int64(c.ChunkSize)-c.Requested)
			pieces += (c.Used - own) * int64(c.ChunkSize)
		}
		w.Classes = append(w.Classes, one)
		w.Items += c.Used * int64(c.ChunkSize)
	}
	if large >= 0 {
		w.Classes[large].InChunks = max(0, pieces-w.Classes[large].Requested)
	}
	for _, c := range w.Classes {
		w.InChunks += c.InChunks
	}
	w.Items -= w.InChunks
	w.Unassigned = max(0, w.Unassigned)
	return w
}

// estimate returns what chunks of each class have beyond their items, if the server did not say it.
func (s *Server) estimate() map[int]int64 {
	if s.Stats != nil {
		return nil
	}
	of := map[int]float64{}
	table := s.Config.Table()
	for _, it := range s.Items {
		class := table.Of(it.Size)
		of[class.ID] += it.Count * float64(class.Size-min(it.Size, class.Size))
	}
	bytes := map[int]int64{}
	for id, n := range of {
		bytes[id] = int64(n)
	}
	return bytes
}
