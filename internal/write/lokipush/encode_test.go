package lokipush

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// pushed is a stream as tests write it.
type pushed struct {
	labels  string
	entries []entry
}

type entry struct {
	at       int64
	line     string
	metadata []string // name, value, ...
}

func message1(dst []byte, number protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), b)
}

// protobufOf encodes a PushRequest.
func protobufOf(streams ...pushed) (out []byte) {
	for _, s := range streams {
		b := message1(nil, 1, []byte(s.labels))
		for _, e := range s.entries {
			ts := binary.AppendUvarint([]byte{0x08}, uint64(e.at/1e9))
			ts = binary.AppendUvarint(append(ts, 0x10), uint64(e.at%1e9))
			m := message1(message1(nil, 1, ts), 2, []byte(e.line))
			for i := 0; i+1 < len(e.metadata); i += 2 {
				m = message1(m, 3, message1(message1(nil, 1, []byte(e.metadata[i])), 2, []byte(e.metadata[i+1])))
			}
			b = message1(b, 2, m)
		}
		out = message1(out, 1, b)
	}
	return out
}

// jsonOf encodes the streams as JSON with labels as an object.
func jsonOf(streams ...pushed) []byte {
	var list []any
	for _, s := range streams {
		var values []any
		for _, e := range s.entries {
			v := []any{strconv.FormatInt(e.at, 10), e.line}
			if len(e.metadata) > 0 {
				m := map[string]string{}
				for i := 0; i+1 < len(e.metadata); i += 2 {
					m[e.metadata[i]] = e.metadata[i+1]
				}
				v = append(v, m)
			}
			values = append(values, v)
		}
		list = append(list, map[string]any{"stream": json.RawMessage(s.labels), "values": values})
	}
	b, err := json.Marshal(map[string]any{"streams": list})
	if err != nil {
		panic(err)
	}
	return b
}

// legacyOf encodes the streams in the older form.
func legacyOf(streams ...pushed) []byte {
	var list []any
	for _, s := range streams {
		var entries []any
		for _, e := range s.entries {
			entries = append(entries, map[string]string{"ts": time.Unix(0, e.at).UTC().Format(time.RFC3339Nano), "line": e.line})
		}
		list = append(list, map[string]any{"labels": s.labels, "entries": entries})
	}
	b, err := json.Marshal(map[string]any{"streams": list})
	if err != nil {
		panic(err)
	}
	return b
}
