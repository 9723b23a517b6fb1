package tsdbimport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// filesOf is a source of small files.
type filesOf map[string]string

func (f filesOf) List(_ context.Context, fn func(name string) error) error {
	for name := range f {
		if err := fn(name); err != nil {
			return err
		}
	}
	return nil
}

func (f filesOf) Get(_ context.Context, name string) ([]byte, error) { return []byte(f[name]), nil }

func (f filesOf) Fetch(context.Context, *Block) (string, func() error, error) {
	return "", nil, errors.New("not a folder")
}

const (
	first  = "01JD2M6X0E2FZ3V1W8Q4K7N5RA"
	second = "01JD2M6X0E2FZ3V1W8Q4K7N5RB"
	third  = "01JD2M6X0E2FZ3V1W8Q4K7N5RC"
)

func metaOf(id string, from int64, more string) string {
	return fmt.Sprintf(`{"ulid":%q,"minTime":%d,"maxTime":%d,"stats":{"numSamples":7,"numSeries":2},"version":1%s}`, id, from, from+7_200_000, more)
}

// TestBlocks reads the layouts of Prometheus, Thanos and Mimir.
func TestBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		files filesOf
		want  []string // tenant/id: why it is left out
	}{
		"prometheus": {filesOf{
			second + "/meta.json": metaOf(second, 1000, ""), second + "/index": "", first + "/meta.json": metaOf(first, 2000, ""), "wal/000001": "", "lock": "",
		}, []string{"/" + second, "/" + first}},
		"one block": {filesOf{"meta.json": metaOf(first, 0, ""), "index": "", "chunks/000001": ""}, []string{"/" + first}},
		"thanos": {filesOf{
			first + "/meta.json":             metaOf(first, 0, `,"thanos":{"labels":{"cluster":"eu"},"downsample":{"resolution":0}}`),
			second + "/meta.json":            metaOf(second, 0, `,"thanos":{"labels":{"cluster":"eu"},"downsample":{"resolution":300000}}`),
			third + "/meta.json":             metaOf(third, 0, ""),
			third + "/deletion-mark.json":    "{}",
			"debug/metas/" + third + ".json": "",
		}, []string{"/" + first, "/" + second + ": it is downsampled to one point in 5m0s", "/" + third + ": it is marked for deletion"}},
		"mimir": {filesOf{
			"b/" + first + "/meta.json": metaOf(first, 0, `,"thanos":{"labels":{"__org_id__":"b"}}`), "b/bucket-index.json.gz": "",
			"a/" + second + "/meta.json": metaOf(second, 9, ""), "a/markers/" + second + "-deletion-mark.json": "", "a/" + third + "/index": "",
		}, []string{"a/" + third + ": it has no meta.json", "a/" + second, "b/" + first}},
		"compacted": {filesOf{
			first + "/meta.json":  metaOf(first, 0, ""),
			second + "/meta.json": metaOf(second, 0, `,"compaction":{"level":2,"parents":[{"ulid":"`+first+`","minTime":0,"maxTime":1}]}`),
		}, []string{"/" + first + ": it was compacted into " + second, "/" + second}},
	} {
		t.Run(name, func(t *testing.T) {
			blocks, err := Blocks(t.Context(), c.files)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range blocks {
				b := &blocks[i]
				text := b.Tenant + "/" + b.ID
				if b.LeftOut != "" {
					text += ": " + b.LeftOut
				}
				got = append(got, text)
				if _, ok := b.External["__org_id__"]; ok {
					t.Errorf("%s has labels of Mimir's own", b.ID)
				}
			}
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got %q, expected %q", got, c.want)
			}
		})
	}
}

// TestBadMeta lists what a meta.json may not be.
func TestBadMeta(t *testing.T) {
	for text, class := range map[string]error{
		"":                         model.ErrCorrupt,
		"{":                        model.ErrCorrupt,
		`{"version":1}`:            model.ErrCorrupt,
		`{"ulid":"x","version":1}`: model.ErrCorrupt,
		strings.Replace(metaOf(first, 0, ""), `"version":1`, `"version":2`, 1):                model.ErrInvalid,
		strings.Replace(metaOf(first, 0, ""), `"minTime":0`, `"minTime":9000000000`, 1):       model.ErrCorrupt,
		strings.Replace(metaOf(first, 0, ""), `"maxTime":7200000`, `"maxTime":1e18`, 1):       model.ErrCorrupt,
		strings.Replace(metaOf(first, 0, ""), `"minTime":0`, `"minTime":-900000000000000`, 1): model.ErrCorrupt,
	} {
		if _, err := parseMeta([]byte(text)); !errors.Is(err, class) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzMeta(f *testing.F) {
	f.Add([]byte(metaOf(first, 0, `,"thanos":{"labels":{"cluster":"eu"},"downsample":{"resolution":0}}`)))
	f.Add([]byte(metaOf(first, -5, `,"compaction":{"parents":[{"ulid":"`+second+`"}]}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := parseMeta(text)
		if err != nil {
			return
		}
		n := 0
		_ = days(b.MinTime, b.MaxTime, Progress{}, func(lo, hi int64, _ uint64) error {
			if n++; lo >= hi || n > 4000 {
				t.Fatalf("day %d from %d to %d", n, lo, hi)
			}
			return nil
		})
	})
}

// TestDays: days end at midnight in UTC, also before 1970, and progress is skipped.
func TestDays(t *testing.T) {
	for _, c := range []struct {
		from, to int64
		p        Progress
		want     string
	}{
		{-1, 1, Progress{}, "-1-0 0-1 "},
		{5, 5, Progress{}, ""},
		{10, dayLength + 10, Progress{}, "10-86400000 86400000-86400010 "},
		{10, dayLength + 10, Progress{Begun: true, Until: dayLength, Series: 3}, "86400000-86400010@3 "},
		{10, dayLength + 10, Progress{Begun: true, Until: 10, Series: 3}, "10-86400000@3 86400000-86400010 "},
		{10, 20, Progress{Begun: true, Until: 20}, ""},
	} {
		got := ""
		_ = days(c.from, c.to, c.p, func(lo, hi int64, series uint64) error {
			got += fmt.Sprintf("%d-%d", lo, hi)
			if series > 0 {
				got += fmt.Sprintf("@%d", series)
			}
			got += " "
			return nil
		})
		if got != c.want {
			t.Errorf("%d to %d: %q, expected %q", c.from, c.to, got, c.want)
		}
	}
}
