package loki

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/readtest"
)

// pushes is a write path into memory that tells of its batches.
type pushes struct {
	*readtest.Memory
	mu       sync.Mutex
	watchers []func(*model.Batch)
}

func (p *pushes) Watch(fn func(*model.Batch)) (cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers = append(p.watchers, fn)
	n := len(p.watchers) - 1
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watchers[n] = nil
	}
}

// oneSeries gives the labels of a batch of one series.
type oneSeries model.Labels

func (s oneSeries) BuildLabels(_ int, b *model.LabelsBuilder) {
	for n, v, rest, ok := model.Labels(s).Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}

// push stores one line.
func (p *pushes) push(tenant string, l model.Labels, line readtest.Line) {
	b := &model.Batch{Tenant: tenant, Signal: model.Logs, Source: oneSeries(l)}
	b.Text.AppendBlob(line.Time, model.KindText, model.AppendLine(nil, &model.Line{Text: []byte(line.Text), Metadata: line.Metadata}), 0)
	b.EndSeries(l.Key(7, model.Logs))
	p.AddText(tenant, l.Key(7, model.Logs), l, line)
	p.mu.Lock()
	watchers := slices.Clone(p.watchers)
	p.mu.Unlock()
	for _, fn := range watchers {
		if fn != nil {
			fn(b)
		}
	}
}

// A client sees the lines since its start, and each that comes after them, once, of its tenant and of its
// selector.
func TestTailOfEngine(t *testing.T) {
	store := &pushes{Memory: readtest.NewMemory(1)}
	_, s := tailServer(t, nil, func(o *Options) {
		o.Now = nil
		o.Engine = logql.New(logql.Options{Read: read.New(read.Options{Sources: []read.Source{store}}), Watch: store, Workers: 1, Registerer: o.Registerer})
	})
	a, b := model.LabelsOf("app", "x"), model.LabelsOf("app", "y")
	began := time.Now().UnixNano()
	line := func(n int) readtest.Line {
		return readtest.Line{Time: began + int64(n), Text: fmt.Sprint("line ", n), Metadata: model.LabelsOf("n", fmt.Sprint(n))}
	}
	const past, all = 30, 100
	for i := range past {
		store.push("anonymous", a, line(i))
		store.push("anonymous", b, line(i))
		store.push("other", a, line(i))
	}
	conn := mustDial(t, s, current+"tail", selector, "X-Loki-Response-Encoding-Flags: categorize-labels")
	frames := make(chan string)
	go func() {
		defer close(frames)
		for {
			_, frame, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			frames <- string(frame)
		}
	}()
	var got []string
	for pushed := past; len(got) < all; {
		var frame struct {
			Streams []struct {
				Stream map[string]string
				Values [][3]any
			}
			Dropped []any `json:"dropped_entries"`
		}
		select {
		case text, ok := <-frames:
			if err := json.Unmarshal([]byte(text), &frame); !ok || err != nil || len(frame.Dropped) > 0 {
				t.Fatalf("%v %v: %s", ok, err, text)
			}
		case <-time.After(guard):
			t.Fatalf("%d lines have come: %s", len(got), got)
		}
		for _, st := range frame.Streams {
			if len(st.Stream) != 1 || st.Stream["app"] != "x" {
				t.Fatalf("%v", st)
			}
			for _, v := range st.Values {
				got = append(got, v[1].(string))
			}
		}
		// The rest is pushed once the first lines have come, so that some are of the past and some are not.
		for ; pushed < all; pushed++ {
			store.push("anonymous", a, line(pushed))
			store.push("other", a, line(pushed))
		}
	}
	for i, l := range got {
		if l != fmt.Sprint("line ", i) {
			t.Fatalf("line %d is %q: %q", i, l, got)
		}
	}
	conn.Close(websocket.StatusNormalClosure, "")
	for range frames {
	}
}
