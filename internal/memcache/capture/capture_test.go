package capture

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCapture records the set of a real server, and finds it by its second.
func TestCapture(t *testing.T) {
	s := memcachetest.Start(t)
	file := filepath.Join(t.TempDir(), "record.log")
	var said bytes.Buffer
	c := Record{Addr: s.Addr, For: 2 * time.Second, Out: file, Watch: []string{"fetchers", "mutations"}, MaxSize: 10, Timeout: 5 * time.Second}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		time.Sleep(time.Second)
		conn, err := net.Dial("tcp", s.Addr)
		if err != nil {
			sent <- err
			return
		}
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "set 6f425180black_base.bank_codes 0 86700 5\r\nhello\r\nget none\r\n")
		sent <- err
	}()
	if err := c.Run(t.Context(), &said); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	if err := (&Show{File: file, UTC: true}).Run(&all); err != nil {
		t.Fatalf("%v, %s", err, said.String())
	}
	if !strings.Contains(all.String(), "type=item_store key=6f425180black_base.bank_codes status=stored") || !strings.Contains(all.String(), "key=none status=not_found") {
		t.Fatalf("%s, %s", all.String(), said.String())
	}
	second := all.String()[len("2026-01-02T"):len("2026-01-02T15:04:05")]
	var one bytes.Buffer
	if err := (&Show{File: file, At: second, Within: 2 * time.Second, Type: "item_store", UTC: true}).Run(&one); err != nil || strings.Count(one.String(), "\n") != 1 {
		t.Errorf("at %s: %s, %v", second, one.String(), err)
	}
	if err := (&Show{File: file, At: "2001-01-01T00:00:00Z", Within: time.Second}).Run(&one); err == nil {
		t.Error("a moment that the record does not have")
	}
	if err := (&Record{Addr: s.Addr, For: time.Second, Out: file, Watch: []string{"nothing"}, MaxSize: 1, Timeout: 5 * time.Second}).Run(t.Context(), &said); err == nil {
		t.Error("the server knows no such watch")
	}
}

func FuzzShow(f *testing.F) {
	f.Add("ts=1795712160.61 gid=1 type=item_get key=a status=found clsid=1 cfd=30 size=63\nts=1795712161.999999 gid=2 type=eviction key=b fetch=no\n", "14:49:40")
	f.Add("ts=x", "")
	f.Add("ts=1.5 a\nskipped=12\n", "00:00:01")
	f.Add("ts=1.1000000 a", "2026-01-01T00:00:00Z")
	f.Fuzz(func(t *testing.T, text, at string) {
		var out bytes.Buffer
		err := (&Show{File: "fuzz", At: at, Within: time.Second}).show(strings.NewReader(text), &out, time.UTC)
		if err == nil && out.Len() == 0 {
			t.Error("nothing is shown, without an error")
		}
	})
}
