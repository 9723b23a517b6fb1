package model

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
)

var rewrite = flag.Bool("rewrite", false, "re-make golden files")

// TestKeysGolden keeps the construction of keys, which is a published format: a change here makes every
// existing bucket unreadable.
func TestKeysGolden(t *testing.T) {
	sets := []Labels{
		nil,
		LabelsOf("__name__", "up"),
		LabelsOf("__name__", "up", "job", "node"),
		LabelsOf("__name__", "up", "job", "node", "instance", "a:9100"),
		LabelsOf("__name__", "up", "job", "node", "instance", "b:9100"),
		LabelsOf("__name__", "up", "job", "other", "instance", "a:9100"),
		LabelsOf("job", "node"),
		LabelsOf("__name__", "a"),
		LabelsOf("__name__", "a.b"),
		LabelsOf("__name__", "a.b.c.d"),
		LabelsOf("__name__", "a.b.c.e"),
		LabelsOf("__name__", "a.b.x.e"),
		LabelsOf("__name__", "a.c.x.e"),
		LabelsOf("__name__", ".a"),
		LabelsOf("__name__", "a.b.c.d", "dc", "x"),
		LabelsOf("service_name", "shop", "namespace", "eu", "instance", "i"),
		LabelsOf("service_name", "shop", "cluster", "eu", "instance", "i"),
		LabelsOf("service_name", "shop", "cluster", "us", "namespace", "eu"),
		LabelsOf("__name__", strings.Repeat("long", 100), "snow", "\u2603"),
	}
	var sb strings.Builder
	for _, seed := range []KeySeed{0, 0x0123456789abcdef} {
		for _, signal := range []Signal{Metrics, Logs} {
			for _, l := range sets {
				fmt.Fprintf(&sb, "%016x %s %s %s\n", uint64(seed), signal, l.Key(seed, signal), l)
			}
		}
	}
	const golden = "testdata/keys.txt"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(sb.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if sb.String() != string(want) {
		t.Errorf("keys have changed:\n%s", sb.String())
	}
}

// Fields that must be equal, and fields that must not, by hexadecimal digit: name 5, group 3, target 4, all
// 20.
func TestKeyFields(t *testing.T) {
	key := func(pairs ...string) string { return LabelsOf(pairs...).Key(7, Metrics).String() }
	a := key("__name__", "m", "job", "j", "instance", "i")
	b := key("__name__", "m", "job", "j", "instance", "k")
	c := key("__name__", "m", "job", "j", "instance", "i", "x", "y")
	if a[:8] != b[:8] || a[8:12] == b[8:12] {
		t.Errorf("%s and %s should share name and group only", a, b)
	}
	if a[:12] != c[:12] || a[12:] == c[12:] {
		t.Errorf("%s and %s should share all but the last field", a, c)
	}
	if k := key("x", "y"); k[:12] != "000000000000" {
		t.Errorf("%s: the fields of absent labels are not zero", k)
	}
	p, q, r := key("__name__", "a.b.c.d"), key("__name__", "a.b.c.e"), key("__name__", "a.b.x.e")
	if p[:12] != q[:12] || p[12:] == q[12:] {
		t.Errorf("%s and %s should share their path", p, q)
	}
	if q[:5] != r[:5] || q[5:12] == r[5:12] {
		t.Errorf("%s and %s should share the first two nodes only", q, r)
	}
}

func TestNameKeyIsTheKeyOfTheLabels(t *testing.T) {
	b := KeyBuilder{Seed: 3, Signal: Metrics}
	for _, name := range []string{"a", "a.b", "a.b.c", "a.b.d", "x", strings.Repeat("n", 300) + ".m", "a.b.c"} {
		if got, want := b.NameKey([]byte(name)), LabelsOf("__name__", name).Key(3, Metrics); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	name := []byte("a.b.c")
	alloctest.AtMost(t, 0, 100, func() { b.NameKey(name) })
}
