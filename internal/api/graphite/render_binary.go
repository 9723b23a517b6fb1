package graphite

import (
	"encoding/binary"
	"math"

	"github.com/tinylib/msgp/msgp"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// The members of a series in both binary formats, which graphite-web reads from the servers of its cluster.
const members = 9

// writeMsgpack writes a list of maps.
func writeMsgpack(b *api.Body, _ *rendering, list series.List) error {
	b.Buf = msgp.AppendArrayHeader(b.Buf, uint32(len(list)))
	for _, s := range list {
		b.Buf = msgp.AppendMapHeader(b.Buf, members)
		text := func(name, value string) { b.Buf = msgp.AppendString(msgp.AppendString(b.Buf, name), value) }
		number := func(name string, value int64) { b.Buf = msgp.AppendInt64(msgp.AppendString(b.Buf, name), value) }
		text("name", s.Name)
		number("start", s.Start)
		number("end", s.End)
		number("step", s.Step)
		b.Buf = msgp.AppendArrayHeader(msgp.AppendString(b.Buf, "values"), uint32(len(s.Values)))
		for _, v := range s.Values {
			if series.IsNull(v) {
				b.Buf = msgp.AppendNil(b.Buf)
			} else {
				b.Buf = msgp.AppendFloat64(b.Buf, v)
			}
			b.Spill()
		}
		text("pathExpression", s.Path)
		number("valuesPerPoint", 1)
		text("consolidationFunc", s.Consolidation)
		b.Buf = msgp.AppendFloat64(msgp.AppendString(b.Buf, "xFilesFactor"), s.XFF)
	}
	return nil
}

// The opcodes of a pickle of protocol 2 that holds lists, dictionaries, texts and numbers.
const (
	pickleProtocol = "\x80\x02"
	pickleMark     = '('
	pickleList     = ']'
	pickleAppends  = 'e'
	pickleDict     = '}'
	pickleSetItems = 'u'
	pickleText     = 'X'
	pickleInt      = 'J'
	pickleLong     = 0x8a
	pickleFloat    = 'G'
	pickleNone     = 'N'
	pickleStop     = '.'
)

// writePickle writes a list of dictionaries.
func writePickle(b *api.Body, _ *rendering, list series.List) error {
	b.Raw(pickleProtocol)
	b.Buf = append(b.Buf, pickleList, pickleMark)
	for _, s := range list {
		b.Buf = append(b.Buf, pickleDict, pickleMark)
		pickleString(b, "name", s.Name)
		pickleNumber(b, "start", s.Start)
		pickleNumber(b, "end", s.End)
		pickleNumber(b, "step", s.Step)
		pickleName(b, "values")
		b.Buf = append(b.Buf, pickleList, pickleMark)
		for _, v := range s.Values {
			if series.IsNull(v) {
				b.Buf = append(b.Buf, pickleNone)
			} else {
				b.Buf = binary.BigEndian.AppendUint64(append(b.Buf, pickleFloat), math.Float64bits(v))
			}
			b.Spill()
		}
		b.Buf = append(b.Buf, pickleAppends)
		pickleString(b, "pathExpression", s.Path)
		pickleNumber(b, "valuesPerPoint", 1)
		pickleString(b, "consolidationFunc", s.Consolidation)
		pickleName(b, "xFilesFactor")
		b.Buf = binary.BigEndian.AppendUint64(append(b.Buf, pickleFloat), math.Float64bits(s.XFF))
		b.Buf = append(b.Buf, pickleSetItems)
	}
	b.Buf = append(b.Buf, pickleAppends, pickleStop)
	return nil
}

func pickleName(b *api.Body, name string) {
	b.Buf = binary.LittleEndian.AppendUint32(append(b.Buf, pickleText), uint32(len(name)))
	b.Raw(name)
}

func pickleString(b *api.Body, name, value string) {
	pickleName(b, name)
	pickleName(b, value)
}

func pickleNumber(b *api.Body, name string, value int64) {
	pickleName(b, name)
	if int64(int32(value)) == value {
		b.Buf = binary.LittleEndian.AppendUint32(append(b.Buf, pickleInt), uint32(value))
		return
	}
	b.Buf = binary.LittleEndian.AppendUint64(append(b.Buf, pickleLong, 8), uint64(value))
}
