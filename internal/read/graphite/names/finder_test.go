package names

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/nametree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var always = model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}

// memory is a source of sets of names, each sorted or not.
type memory struct {
	mu       sync.Mutex
	sets     []*memorySet
	released int
}

type memorySet struct {
	model.NameList
	mu   sync.Mutex
	made []byte
}

// index returns what was made.
func (s *memorySet) index() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}

func (s *memorySet) Made(ctx context.Context, make func(context.Context) ([]byte, error)) (b []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil && make != nil && s.Sorted {
		s.made, err = make(ctx)
	}
	return s.made, err
}

func (m *memory) Names(context.Context, *model.Request) (sets []model.NameSet, release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sets {
		sets = append(sets, s)
	}
	return sets, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.released++
	}, nil
}

func newSet(sorted bool, names ...string) *memorySet {
	s := &memorySet{NameList: model.NameList{Times: always}}
	for _, n := range names {
		s.Add(model.LabelsOf("__name__", n))
	}
	if sorted {
		s.Sort()
	}
	return s
}

func newFinder(t testing.TB, limit int, sets ...*memorySet) (*Finder, *memory) {
	m := &memory{sets: sets}
	f := New(Options{From: m, Limits: Limits{MaxNames: limit}, Registerer: prometheus.NewRegistry()})
	t.Cleanup(func() { _ = f.Close() })
	return f, m
}

// indexed makes the index of a set.
func indexed(t testing.TB, f *Finder, s *memorySet) *index {
	b, err := f.build(context.Background(), (&Query{}).request(), s)
	if err != nil {
		t.Fatal(err)
	}
	s.made = b
	x, err := nametree.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	return &index{x}
}

func texts(all []Match) []string {
	out := []string{}
	for _, m := range all {
		text := m.Path
		if !m.Leaf {
			text += "/"
		}
		out = append(out, text)
	}
	return out
}

// TestFind: globs as graphite-web reads them.
func TestFind(t *testing.T) {
	all := []string{"a", "a.b", "a.b.c", "a.b-x.c", "a.b.d.e", "a.web1.cpu", "a.web2.cpu", "a.web10.cpu", "x", "x^.y", "é.ü", "a.*.lit", ".hidden", "a..b", "z.{q}"}
	for _, c := range []struct{ pattern, want string }{
		{"*", "/ a a/ x x^/ z/ é/"},
		{"a", "a a/"},
		{"a.b", "a.b a.b/"},
		{"a.b.*", "a.b.c a.b.d/"},
		{"a.*.cpu", "a.web1.cpu a.web10.cpu a.web2.cpu"},
		{"a.web?.cpu", "a.web1.cpu a.web2.cpu"},
		{"a.web[0-9].cpu", "a.web1.cpu a.web2.cpu"},
		{"a.web[!1].cpu", "a.web2.cpu"},
		{"a.web[^1].cpu", "a.web1.cpu"},
		{"a.{web1,b}", "a.b a.b/ a.web1/"},
		{"a.w{eb{1,2},x}.cpu", "a.web1.cpu a.web2.cpu"},
		{"a.web*.{cpu,}", "a.web1.cpu a.web10.cpu a.web2.cpu"},
		{"**.cpu", "a.web1.cpu a.web10.cpu a.web2.cpu"},
		{"a.**.e", "a.b.d.e"},
		{"a.b.**", "a.b.c a.b.d/ a.b.d.e"},
		{"a.**.b.c", "a.b.c"},
		{"?.?", "a.*/ a.b a.b/ é.ü"},
		{"*.*", ".hidden a./ a.*/ a.b a.b/ a.b-x/ a.web1/ a.web10/ a.web2/ x^.y z.{q} é.ü"},
		{"x[^]*.y", "x^.y"},
		{"[é].*", "é.ü"},
		{`a.\*.lit`, "a.*.lit"},
		{`z.\{q\}`, "z.{q}"},
		{"z.{q", ""},
		{"a.[b", ""},
		{"A", ""},
		{"a.b.c.d", ""},
	} {
		want := strings.Fields(c.want)
		slices.Sort(want)
		for _, set := range []*memorySet{newSet(true, all...), newSet(false, all...)} {
			f, m := newFinder(t, 0, set)
			for range 2 {
				got, err := f.Find(t.Context(), &Query{Range: always}, c.pattern)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(sorted(texts(got)), want) {
					t.Errorf("%q: got %q, want %q", c.pattern, texts(got), want)
				}
				if set.Sorted {
					indexed(t, f, set)
				}
			}
			if m.released != 2 {
				t.Error("a set was not released")
			}
		}
	}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// reference finds by looking at every beginning of every name.
func reference(all []string, match func(nodes []string) bool) []string {
	found := make(map[string]struct{})
	for _, name := range all {
		nodes := strings.Split(name, ".")
		for n := range nodes {
			if match(nodes[:n+1]) {
				text := strings.Join(nodes[:n+1], ".")
				if n+1 < len(nodes) {
					text += "/"
				}
				found[text] = struct{}{}
			}
		}
	}
	out := []string{}
	for text := range found {
		out = append(out, text)
	}
	return sorted(out)
}

// drawName draws a name over few nodes, so that names share branches.
func drawName(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "a-b", "a b", "a,b", "b0", "é", "a0", ""}), 1, 5).
		Filter(func(nodes []string) bool { return len(nodes) > 1 || nodes[0] != "" }).Draw(t, "name"), ".")
}

func drawGlob(t *rapid.T) string {
	parts := []string{"a", "b", "ab", "*", "**", "?", "[a-b]", "a*", "*b", "*-*", "{a,b}", "{a*,é}", "[!a]*", "a{,-}b", "a[", "{b", "?b", "*0", "b?"}
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 5).Draw(t, "glob"), ".")
}

// TestWays: the index, the dictionary, and a look at each name find what the definition says.
func TestWays(outer *testing.T) {
	f, _ := newFinder(outer, 0)
	rapid.Check(outer, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawName), 1, 40).Draw(t, "names")
		pattern := drawGlob(t)
		g, err := ParseGlob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		want := reference(all, func(nodes []string) bool { return satisfies(g.nodes, nodes) })
		set := newSet(true, all...)
		check := func(way string, run func(emit emit) error) {
			m := &matches{quota: new(model.Quota)}
			if err := run(m.add); err != nil {
				t.Fatal(err)
			}
			got, err := m.finish()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(sorted(texts(got)), want) {
				t.Fatalf("%s: %q in %q: got %q, want %q", way, pattern, all, texts(got), want)
			}
		}
		ctx := context.Background()
		for _, near := range []int{0, 1, seekCost} {
			check(fmt.Sprintf("dictionary, %d before a seek", near), func(emit emit) error {
				_, err := (&scan{g: g, emit: emit, near: near}).run(ctx, set.Walk(ctx))
				return err
			})
		}
		check("whole", func(emit emit) error {
			return set.Each(ctx, func(name []byte) error { return g.whole(name, emit) })
		})
		x := indexed(outer, f, set)
		check("index", func(emit emit) error { return x.find(ctx, g, emit) })
	})
}

// satisfies is the definition of a glob.
func satisfies(pattern []node, nodes []string) bool {
	switch {
	case len(pattern) == 0 || len(nodes) == 0:
		return len(pattern) == len(nodes)
	case pattern[0].deep:
		return satisfies(pattern[1:], nodes) || satisfies(pattern, nodes[1:])
	}
	return pattern[0].match([]byte(nodes[0])) && satisfies(pattern[1:], nodes[1:])
}

// TestBounds: a pattern beyond a bound, and a result beyond the limit, are refused with the setting.
func TestBounds(t *testing.T) {
	f, _ := newFinder(t, 3, newSet(true, "a.1", "a.2", "a.3", "a.4"), newSet(true, "a.1", "a.2", "b.1"))
	for _, c := range []struct{ pattern, text string }{
		{"a.*", "limit exceeded: the pattern matches more than 3 names (graphite.max-names); narrow it"},
		{"*.*", "limit exceeded: the pattern matches more than 3 names (graphite.max-names); narrow it"},
		{strings.Repeat("a", 70_000), "invalid: the pattern has 70000 bytes; at most 65536 are allowed"},
		{strings.Repeat("*.", 70), "invalid: the pattern has 71 nodes; at most 63 are allowed"},
		{strings.Repeat("{a,b}", 20), "invalid: a node of the pattern has more than 4096 alternatives in braces"},
		{"{" + strings.Repeat("a,", 30_000) + "}", "invalid: a node of the pattern has more than 4096 alternatives in braces"},
	} {
		_, err := f.Find(t.Context(), &Query{Range: always}, c.pattern)
		if err == nil || err.Error() != c.text {
			t.Errorf("%.20s: %v, want %s", c.pattern, err, c.text)
		}
	}
	if got, err := f.Find(t.Context(), &Query{Range: always}, "a.[123]"); err != nil || len(got) != 3 {
		t.Errorf("as many as allowed: %v %v", got, err)
	}
}

// TestMemory: a result beyond the memory of a query is refused, and so is an index.
func TestMemory(t *testing.T) {
	var all []string
	for i := range 20_000 {
		all = append(all, fmt.Sprintf("a.host%d.cpu%d.x%d", i, i, i))
	}
	f, m := newFinder(t, 1_000_000, newSet(true, all...))
	q := &Query{Range: always, Quota: &model.Quota{MaxBytes: 1 << 20}}
	if got, err := f.Find(t.Context(), q, "*.*.*.x7777"); err != nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
	if _, err := f.Find(t.Context(), q, "*.*.*.*"); !errors.Is(err, model.ErrLimit) {
		t.Errorf("a result beyond the memory of a query: %v", err)
	}
	r := (&Query{Quota: &model.Quota{MaxBytes: 1 << 20}}).request()
	if _, err := f.build(t.Context(), r, m.sets[0]); !errors.Is(err, model.ErrLimit) || r.Quota.Charged().Bytes() != 0 {
		t.Errorf("an index beyond the memory of a query: %v, and %d bytes stay charged", err, r.Quota.Charged().Bytes())
	}
}

// TestWarmer: after a query that scans many names, an index is made, also for parts that come later, until
// the tenant stops asking. What the cache does not keep is not made all the time.
func TestWarmer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []string
		for i := range manyNames + 10 {
			all = append(all, fmt.Sprintf("a.host%d.x", i))
		}
		set, later := newSet(true, all...), newSet(true, "b.c")
		f, m := newFinder(t, 0, set)
		find := func(pattern string) {
			if got, err := f.Find(t.Context(), &Query{Range: always}, pattern); err != nil || len(got) == 0 {
				t.Errorf("%v %v", got, err)
			}
		}
		find("a.host7.x")
		synctest.Wait()
		if set.index() != nil {
			t.Error("an index was made for a query that looks at one name")
		}
		find("*.*7.x")
		synctest.Wait()
		if set.index() == nil {
			t.Error("no index was made")
		}
		m.mu.Lock()
		m.sets = append(m.sets, later)
		m.mu.Unlock()
		time.Sleep(refreshEvery + time.Second)
		if later.index() == nil {
			t.Error("no index was made of a part that came later")
		}
		time.Sleep(idleAfter + time.Minute)
		later.mu.Lock()
		later.made = nil
		later.mu.Unlock()
		time.Sleep(time.Minute)
		f.warmer.mu.Lock()
		kept := len(f.warmer.tenants)
		f.warmer.mu.Unlock()
		if later.index() != nil || kept != 0 {
			t.Error("a tenant that does not ask is kept warm")
		}
	})
}

// TestShared: subtrees that are equal are stored once.
func TestShared(t *testing.T) {
	var all []string
	for host := range 1000 {
		for m := range 100 {
			all = append(all, fmt.Sprintf("dc.host%d.plugin%d.metric%d", host, m/10, m))
		}
	}
	f, _ := newFinder(t, 0)
	b, err := f.build(t.Context(), (&Query{}).request(), newSet(true, all...))
	if err != nil || len(b) > 40_000 {
		t.Errorf("%d names take %d bytes; %v", len(all), len(b), err)
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"a.*.c", "**", "{a,b}*[0-9]", `\*.[!a-z]`, "[]a]", "{{a,b},c}", "[[{]}", "é?", "a.**.**.b"} {
		f.Add(s, "a.b.c")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := ParseGlob(pattern)
		if err != nil {
			return
		}
		var want, got bool
		want = satisfies(g.nodes, strings.Split(name, "."))
		_ = g.whole([]byte(name), func(path []byte, leaf bool) error {
			got = got || leaf
			return nil
		})
		if got != want {
			t.Errorf("%q in %q: %v, want %v", pattern, name, got, want)
		}
	})
}

// TestList: all names of all sets come in order, each once.
func TestList(t *testing.T) {
	f, _ := newFinder(t, 1, newSet(true, "a.b", "a-b", "c"), newSet(false, "z", "a.b", "b", "b"), newSet(true), newSet(true, "c", "d"))
	var got []string
	err := f.List(t.Context(), &Query{Range: always}, func(name []byte) error {
		got = append(got, string(name))
		return nil
	})
	if want := []string{"a-b", "a.b", "b", "c", "d", "z"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %q", got, err, want)
	}
}

// TestSearch: words match nodes whole, at the beginning, inside, and with one letter wrong, in this order.
func TestSearch(t *testing.T) {
	all := []string{"prod.web1.cpu.idle", "prod.web1.cpufreq.idle", "prod.web1.old_cpu.idle", "prod.web1.memory.Idle", "prod.db1.cpu.user", "prod.db1.memroy.used", "x.y"}
	for _, s := range []*memorySet{newSet(true, all...), newSet(false, all...)} {
		f, _ := newFinder(t, 0, s)
		if s.Sorted {
			indexed(t, f, s)
		}
		for _, c := range []struct {
			words string
			limit int
			want  string
		}{
			{"cpu idle", 9, "prod.web1.cpu.idle prod.web1.cpufreq.idle prod.web1.old_cpu.idle"},
			{"cpu idle", 2, "prod.web1.cpu.idle prod.web1.cpufreq.idle"},
			{"IDLE  web1.cpu", 1, "prod.web1.cpu.idle"},
			{"memory", 9, "prod.web1.memory.Idle prod.db1.memroy.used"},
			{"prdo db", 9, "prod.db1.cpu.user prod.db1.memroy.used"},
			{"y", 9, "x.y prod.db1.memroy.used prod.web1.memory.Idle"},
			{"nothing", 9, ""},
		} {
			got, err := f.Search(t.Context(), &Query{Range: always}, c.words, c.limit)
			var names []string
			for _, h := range got {
				names = append(names, h.Name)
			}
			if err != nil || !slices.Equal(names, strings.Fields(c.want)) {
				t.Errorf("%q: %q %v, want %q", c.words, names, err, c.want)
			}
		}
	}
	f, _ := newFinder(t, 0)
	for _, bad := range []string{"", " . ", "a b c d e f g h i"} {
		if _, err := f.Search(t.Context(), &Query{Range: always}, bad, 9); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestLoneMatches: branches with the same names below share a state, of which the only match is found once.
func TestLoneMatches(t *testing.T) {
	f, _ := newFinder(t, 0)
	x := indexed(t, f, newSet(true, "p.a.x.1", "p.a.y", "p.b.x.1", "p.b.y", "p.c.x.1", "p.c.y", "p.d.y"))
	for pattern, want := range map[string]string{
		"p.*.x":   "p.a.x/ p.b.x/ p.c.x/",
		"p.*.y":   "p.a.y p.b.y p.c.y p.d.y",
		"p.*.x.*": "p.a.x.1 p.b.x.1 p.c.x.1",
		"p.*.*":   "p.a.x/ p.a.y p.b.x/ p.b.y p.c.x/ p.c.y p.d.y",
		"**.1":    "p.a.x.1 p.b.x.1 p.c.x.1",
	} {
		g, err := ParseGlob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = x.find(context.Background(), g, func(path []byte, leaf bool) error {
			if text := string(path); leaf {
				got = append(got, text)
			} else {
				got = append(got, text+"/")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", pattern, text, want)
		}
	}
}
