package graphite

import (
	"encoding/binary"

	"github.com/tinylib/msgp/msgp"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/graphite/names"
)

// packedPaths writes paths as graphite-web's clusters and carbonapi read them.
func (h *Handler) packedPaths(_ *api.Request, _ *finding, found []names.Match) (*api.Response, error) {
	byNode(found)
	return &api.Response{ContentType: "application/x-msgpack", Write: func(b *api.Body) error {
		b.Buf = msgp.AppendArrayHeader(b.Buf, uint32(len(found)))
		for i := range found {
			m := &found[i]
			members := uint32(2)
			if m.Leaf {
				members = 3
			}
			b.Buf = msgp.AppendMapHeader(b.Buf, members)
			b.Buf = msgp.AppendString(msgp.AppendString(b.Buf, "path"), m.Path)
			b.Buf = msgp.AppendBool(msgp.AppendString(b.Buf, "is_leaf"), m.Leaf)
			if m.Leaf {
				start, end := h.interval(m)
				b.Buf = msgp.AppendArrayHeader(msgp.AppendArrayHeader(msgp.AppendString(b.Buf, "intervals"), 1), 2)
				b.Buf = msgp.AppendInt64(msgp.AppendInt64(b.Buf, start), end)
			}
			b.Spill()
		}
		return nil
	}}, nil
}

// Further opcodes of a pickle.
const (
	pickleTrue  = 0x88
	pickleFalse = 0x89
	pickleTuple = 0x86 // of the last two values
)

// pickledPaths writes the same as a pickle. Intervals are pairs: a pickle of graphite-web names a class here,
// but a cluster also takes pairs.
func (h *Handler) pickledPaths(_ *api.Request, _ *finding, found []names.Match) (*api.Response, error) {
	byNode(found)
	return &api.Response{ContentType: "application/pickle", Write: func(b *api.Body) error {
		b.Raw(pickleProtocol)
		b.Buf = append(b.Buf, pickleList, pickleMark)
		for i := range found {
			m := &found[i]
			b.Buf = append(b.Buf, pickleDict, pickleMark)
			pickleString(b, "path", m.Path)
			pickleName(b, "is_leaf")
			if !m.Leaf {
				b.Buf = append(b.Buf, pickleFalse, pickleSetItems)
				continue
			}
			b.Buf = append(b.Buf, pickleTrue)
			pickleName(b, "intervals")
			b.Buf = append(b.Buf, pickleList, pickleMark)
			start, end := h.interval(m)
			for _, t := range [...]int64{start, end} {
				b.Buf = binary.LittleEndian.AppendUint64(append(b.Buf, pickleLong, 8), uint64(t))
			}
			b.Buf = append(b.Buf, pickleTuple, pickleAppends, pickleSetItems)
			b.Spill()
		}
		b.Buf = append(b.Buf, pickleAppends, pickleStop)
		return nil
	}}, nil
}
