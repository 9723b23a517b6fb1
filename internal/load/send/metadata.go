package send

import (
	"context"
	"github.com/shaledb/shale/internal/load/wire"
	"time"
)

// metadataSender sends what remote write 1.0 says of metrics, in requests of their own: at first, and then
// once a minute, as a Prometheus does.
type metadataSender struct {
	*shard
	sent time.Time
	raw  []byte
}

const (
	metadataInterval = time.Minute
	metadataBatch    = 2000 // metrics in one request
)

// run sends the metadata of the shard's tenants if it is time to. It returns false when the load is over.
func (m *metadataSender) run(ctx, open context.Context) bool {
	if !m.sent.IsZero() && time.Since(m.sent) < metadataInterval {
		return true
	}
	m.sent = time.Now()
	l := m.load
	for tenant := m.first; tenant < l.Fleet.TenantCount(); tenant += l.Concurrency {
		for first := 0; first < l.Fleet.Metrics; first += metadataBatch {
			pack := func() ([]byte, int) {
				zip := wire.NewPacker(m.shard.zip)
				zip.Begin()
				m.raw = wire.AppendMetadata(m.raw[:0], &l.Fleet, first, min(metadataBatch, l.Fleet.Metrics-first))
				zip.Add(m.raw)
				return zip.End()
			}
			body, size := pack()
			if m.deliver(ctx, open, tenant, &parcel{body: body, size: size, repack: pack, failed: func() {}}) == again {
				return false
			}
		}
	}
	return true
}
