package send

import (
	"context"
	"time"

	"github.com/shaledb/shale/internal/load/wire"
)

// metadataSender sends the metadata of remote write 1.0 in separate requests: at first, and then once a
// minute, as a Prometheus does.
type metadataSender struct {
	*shard
	sent time.Time
	raw  []byte
}

const (
	metadataInterval = time.Minute
	metadataBatch    = 2000 // metrics in one request
)

// run sends the metadata of the shard's tenants if it is due. It returns false when the load is over.
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
