package top

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTop(t *testing.T) {
	s, down := memcachetest.Start(t), "127.0.0.1:"+memcachetest.FreePort(t)
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		reply := make([]byte, 64<<10)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := fmt.Fprintf(c, "set k 0 0 1\r\nx\r\nget k\r\nget none\r\n"); err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Read(reply); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	var out bytes.Buffer
	command := Command{Addr: []string{s.Addr, down}, Every: 300 * time.Millisecond, Count: 2, JSON: true, Timeout: 5 * time.Second}
	if err := command.Run(t.Context(), &out, nil); err != nil {
		t.Fatal(err)
	}
	var lines []Line
	for text := range strings.Lines(out.String()) {
		var l Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 4 {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	l := lines[2]
	if l.Server != s.Addr || l.Gets <= 0 || l.Sets <= 0 || l.HitRatio == nil || *l.HitRatio < 0.4 || *l.HitRatio > 0.6 || l.Connections < 1 || l.BytesIn <= 0 || l.ProbeSeconds <= 0 {
		t.Errorf("%+v", l)
	}
	if lines[3].Server != down || lines[3].Error == "" {
		t.Errorf("%+v", lines[3])
	}
	out.Reset()
	command.JSON, command.Count = false, 1
	if err := command.Run(t.Context(), &out, nil); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "queries") || !strings.Contains(text, " %") || !strings.Contains(text, "refused") {
		t.Error(text)
	}
	close(stop)
	<-stopped
}

func TestRate(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.5: "0.5", 12: "12", 999: "999", 1500: "1.5k", 15_000: "15k", 2.5e6: "2.5M", 3e12: "3T"} {
		if got := rate(n); got != want {
			t.Errorf("%g: %s, want %s", n, got, want)
		}
	}
}
