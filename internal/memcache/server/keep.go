package server

import (
	"context"
	"time"

	"github.com/shaledb/shale/internal/cache"
)

// keepTime bounds how long an ending server writes what memory has to the disk.
const keepTime = 20 * time.Second

// keep writes all items of memory to the disk that are not there. No connection is served any more.
func (s *Server) keep() {
	ctx, cancel := context.WithTimeout(context.Background(), keepTime)
	defer cancel()
	now := s.o.Now()
	second := uint32(now.Unix())
	kept := 0
	shards := s.items.Shards()
	for i := range shards {
		for it := range shards[i].Oldest(second) {
			k := cache.Key{Kind: cache.Item, Object: string(it.Key())}
			if s.disk.Has(k) {
				continue
			}
			if !s.disk.Keep(ctx, k, s.reader(now.Unix()), diskValue(it)) {
				s.o.Logger.Warn("not all items of memory were written to the disk", "written", kept)
				return
			}
			kept++
		}
	}
	s.o.Logger.Info("wrote the items of memory to the disk", "items", kept)
}
