package stats

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
)

func TestServer(t *testing.T) {
	s := memcachetest.Start(t, "-m", "64", "-o", "track_sizes")
	c, err := Dial(t.Context(), s.Addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 50 {
		if err := c.send(fmt.Sprintf("set key%%%d 0 0 1800\r\n%s", i, strings.Repeat("v", 1800))); err != nil {
			t.Fatal(err)
		}
		if line, err := c.line(); err != nil || string(line) != "STORED" {
			t.Fatalf("%s, %v", line, err)
		}
	}
	if v, err := c.Version(); err != nil || !strings.HasPrefix(v, "1.") {
		t.Errorf("version %q, %v", v, err)
	}
	general, err := c.Ask("")
	if err != nil || general.Map()["curr_items"] != "50" {
		t.Errorf("%v items, %v", general.Map()["curr_items"], err)
	}
	if sizes, err := c.Ask("sizes"); err != nil || len(sizes) != 1 || sizes[0] != (Stat{"1888", "50"}) {
		t.Errorf("sizes %v, %v", sizes, err)
	}
	if _, err := c.Ask("nothing"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("an unknown name: %v", err)
	}
	items := 0
	if err := c.Dump(func(it Item) bool {
		items++
		if it.Size != uint32(48+it.KeyLength()+1+1802+8) || it.Class != 15 || it.Fetched {
			t.Errorf("%+v", it)
		}
		return true
	}); err != nil || items != 50 {
		t.Errorf("%d items, %v", items, err)
	}
	if _, err := Dial(t.Context(), "127.0.0.1:1", time.Second); err == nil {
		t.Error("a port without a listener")
	}
}

func TestAddress(t *testing.T) {
	for given, want := range map[string]string{"a": "a:11211", "a:1": "a:1", "::1": "[::1]:11211", "[::1]": "[::1]:11211", "/run/m.sock": "/run/m.sock"} {
		if got := Address(given); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

func FuzzLines(f *testing.F) {
	for _, s := range []string{
		"STAT pid 1", "STAT 1:chunk_size 96", "STAT ", "END", "ERROR", "key=k0 exp=-1 la=1795707912 cas=2 fetch=no cls=15 size=1861", "key= size=99999999999", "key=a exp=x",
		"key=a%20b exp=1 la=2 cas=3 fetch=yes cls=1 size=80 flags=0 ext_page=1 ext_offset=2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if s, end, err := parse([]byte(line)); err == nil && !end && s.Name == "" {
			t.Errorf("%q has no name", line)
		}
		if it, err := ParseItem(line); err == nil && it.Size > 1<<30 {
			t.Errorf("%q has %d bytes", line, it.Size)
		}
	})
}
