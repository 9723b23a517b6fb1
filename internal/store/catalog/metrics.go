package catalog

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	deleted *prometheus.CounterVec
	ships   *prometheus.CounterVec
	// Of retention.
	expiredBlocks, expiredBytes prometheus.Counter
}

// The results of attempts to commit a ship.
const (
	shipWon      = "won"
	shipConflict = "conflict"
	shipLostAck  = "lost_ack"
	shipStale    = "stale"
)

func newMetrics(reg prometheus.Registerer, c *Catalog) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_blocks", Help: "Live blocks in the bucket."},
		func() float64 { return float64(len(c.Live())) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_rollup_blocks", Help: "Live blocks of rollups in the bucket, besides the other live blocks."},
		func() float64 { return float64(len(c.view.Load().rollups)) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_rollup_block_bytes", Help: "Size of the live blocks of rollups in the bucket in bytes."},
		func() float64 {
			var n int64
			for _, b := range c.view.Load().rollups {
				n += b.Bytes
			}
			return float64(n)
		})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_block_bytes", Help: "Size of the live blocks in the bucket in bytes."},
		func() float64 {
			var n int64
			for _, b := range c.Live() {
				n += b.Bytes
			}
			return float64(n)
		})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_records", Help: "Commit records in the catalogue."},
		func() float64 { return float64(c.size().records) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_memory_bytes", Help: "Approximate memory of the catalogue in bytes."},
		func() float64 { return float64(c.size().bytes) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_hidden_blocks", Help: "Replaced or expired blocks whose objects are not deleted yet."},
		func() float64 { return float64(c.size().hidden) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_orphans", Help: "Uploaded objects without a commit record, as of the last hourly search."},
		func() float64 { return float64(c.size().orphans) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_lost_records", Help: "Commit records that are missing from the bucket although no process has collected them; their copies are used."},
		func() float64 { return float64(c.size().lost) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_damaged_records", Help: "Commit records that cannot be read in the bucket; their copies are used."},
		func() float64 { return float64(c.size().damaged) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_stray_blocks", Help: "Blocks whose commit record is lost with its copies, as of the last hourly search; they are never deleted."},
		func() float64 { return float64(c.size().strays) })
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_catalog_deletions", Help: "Stored deletions that queries apply to blocks."},
		func() float64 { return float64(len(c.view.Load().deletions)) })
	m := &metrics{
		deleted: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_catalog_collected_objects_total", Help: "Garbage objects deleted from the bucket, by kind."}, []string{"kind"}),
		ships: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_ship_commits_total",
			Help: "Attempts to commit a ship to the bucket, by result: won, conflict (another process took the number), lost_ack (the ship was there although no response said so), stale (another process ships the journal)."}, []string{"result"}),
	}
	m.expiredBlocks = f.NewCounter(prometheus.CounterOpts{Name: "shale_retention_expired_blocks_total", Help: "Blocks dropped because all of their rows had expired."})
	m.expiredBytes = f.NewCounter(prometheus.CounterOpts{Name: "shale_retention_expired_bytes_total", Help: "Size in bytes of the blocks dropped because all of their rows had expired."})
	for _, result := range []string{shipWon, shipConflict, shipLostAck, shipStale} {
		m.ships.WithLabelValues(result)
	}
	return m
}

func (m *metrics) collected(d Collected) {
	for kind, n := range map[string]int{"block": d.Blocks, "record": d.Records, "orphan": d.Orphans, "deletion": d.Deletions} {
		m.deleted.WithLabelValues(kind).Add(float64(n))
	}
}

// catalogSize counts the content of the catalogue.
type catalogSize struct {
	records, hidden, orphans int
	lost, damaged, strays    int
	bytes                    int64
}

// Approximate sizes in memory: of a Block with its entries in maps and view, of a record, of a shared name.
const (
	blockBytes  = 1000
	recordBytes = 300
	nameBytes   = 32
)

func (c *Catalog) size() catalogSize {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := catalogSize{records: len(c.records), orphans: len(c.orphans), lost: len(c.lost), damaged: len(c.damaged), strays: len(c.strays)}
	live := c.view.Load().ids
	for _, r := range c.records {
		s.bytes += recordBytes
		for _, id := range r.replaces {
			s.bytes += int64(len(id)) + 16
		}
		for i := range r.blocks {
			b := &r.blocks[i]
			if s.bytes += blockBytes + int64(len(b.Tenants))*16; !live[b.ID] && !c.gone[b.ID] {
				s.hidden++
			}
		}
	}
	s.bytes += int64(len(c.names)) * 2 * nameBytes
	return s
}

// MemoryBytes returns the approximate memory of the catalogue.
func (c *Catalog) MemoryBytes() int64 { return c.size().bytes }
