package prom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// TestTreeBytes: the trees of an expression take at most treeBytes for each byte of its text.
func TestTreeBytes(t *testing.T) {
	alloctest.Counts(t)
	const n = 50_000
	for name, text := range map[string]string{
		"matchers":  `{a="b"` + strings.Repeat(`,a=""`, n) + "}",
		"names":     `{"a"` + strings.Repeat(`,a!="b"`, n) + "}",
		"arguments": "label_join(a,'a','b'" + strings.Repeat(",'a'", n) + ")",
		"grouping":  "sum by (" + strings.Repeat("a,", n) + "a) (a)",
		"operators": strings.Repeat("a+", maxDepth-1) + "a",
	} {
		got := alloctest.Live(func() any {
			e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return e
		})
		t.Logf("%s: %.1f bytes for each", name, float64(got)/float64(len(text)))
		const operators = maxDepth * 400 // beyond that, since there are so few
		if most := int64(treeBytes*len(text) + operators); got > most {
			t.Errorf("%s: an expression of %d bytes takes %d, want at most %d", name, len(text), got, most)
		}
	}
}

// TestLabelsBytes: labels in JSON take at most labelsBytes for each byte.
func TestLabelsBytes(t *testing.T) {
	alloctest.Counts(t)
	text := []byte("{")
	for i := range 100_000 {
		text = fmt.Appendf(text, `"%x":"",`, i)
	}
	text = append(text, `"x":""}`...)
	for what, keep := range map[string]func() any{
		"the map":    func() any { m := map[string]string{}; _ = json.Unmarshal(text, &m); return m },
		"the labels": func() any { var ls labels.Labels; _ = json.Unmarshal(text, &ls); return ls },
	} {
		got := alloctest.Live(keep)
		t.Logf("%s: %.1f bytes for each", what, float64(got)/float64(len(text)))
		if most := int64(labelsBytes * len(text)); got > most {
			t.Errorf("%s of %d bytes take %d, want at most %d", what, len(text), got, most)
		}
	}
}

// TestReadRequestBytes: a remote read takes at most what it is charged, whatever is in its body.
func TestReadRequestBytes(t *testing.T) {
	alloctest.Counts(t)
	field := func(number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	const n = 200_000
	for name, raw := range map[string][]byte{
		"matchers":       field(1, bytes.Repeat(field(3, nil), n)),
		"named matchers": field(1, bytes.Repeat(field(3, append(field(2, []byte("a")), field(3, []byte("b"))...)), n)),
		"queries":        bytes.Repeat(field(1, nil), maxSelectors),
		"hints":          bytes.Repeat(field(1, field(4, nil)), maxSelectors),
		"types":          field(2, make([]byte, n)),
		"types apart":    bytes.Repeat([]byte{0x10, 0}, n),
	} {
		quota := new(model.Quota)
		body := snappy.Encode(nil, raw)
		got := alloctest.Live(func() any {
			req, err := decodeRead(body, int64(len(raw)), quota)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			queries := make([]readQuery, len(req.Queries))
			for i, q := range req.Queries {
				if queries[i], err = newReadQuery(q, &regexCharge{quota: quota}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			return []any{req, queries}
		})
		charged := quota.Charged().Bytes()
		t.Logf("%s: %d bytes, %d charged, %d alive", name, len(raw), charged, got)
		if got > charged+64<<10 {
			t.Errorf("%s: %d bytes are charged, and %d alive", name, charged, got)
		}
	}
}
