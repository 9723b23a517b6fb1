package line_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/logql/line/linetest"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// splitPage makes a page of lines, and opens it split; nil if it is not stored in columns.
func splitPage(t testing.TB, texts [][]byte) *lines.Split {
	t.Helper()
	var all []byte
	var ends []uint32
	for _, l := range texts {
		all = append(all, l...)
		ends = append(ends, uint32(len(all)))
	}
	stored, err := lines.Seal(nil, all, 0, ends, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !lines.Splits(stored) {
		return nil
	}
	s, err := lines.OpenSplit(stored, len(texts), uint64(len(all)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// varied returns a line with other digits in the place of its own, so that the codec takes them for values.
func varied(r *rand.Rand, line []byte) []byte {
	b := bytes.Clone(line)
	for i, c := range b {
		if c-'0' <= 9 && r.IntN(4) > 0 {
			b[i] = byte('0' + r.IntN(10))
		}
	}
	return b
}

// checkSplit compares what is found in the lines of a page with what the stages make of them.
func (p *runnerPair) checkSplit(t testing.TB, texts [][]byte, metadata model.Labels) {
	t.Helper()
	page := splitPage(t, texts)
	if page == nil {
		return
	}
	defer page.Release()
	p.checkPage(t, &page.SplitText, texts, metadata)
}

// checkPage is checkSplit for lines that have been split.
func (p *runnerPair) checkPage(t testing.TB, page *model.SplitText, texts [][]byte, metadata model.Labels) {
	t.Helper()
	p.fast.SetPage(page)
	for i, text := range texts {
		var got, want line.Sample
		keep, known := p.fast.SampleSplit(i, len(text), metadata, &got)
		if !known {
			p.unlike++
			continue
		}
		p.plain++
		wantKeep, err := p.slow.Sample(1, text, metadata, &want)
		if err != nil || keep != wantKeep {
			t.Fatalf("%s of %q with %s, split: %v, want %v, %v", p.query, text, metadata, keep, wantKeep, err)
		}
		if keep && (math.Float64bits(got.Value) != math.Float64bits(want.Value) && p.unwraps ||
			got.Bytes != want.Bytes || got.Failed != want.Failed || !bytes.Equal(got.Labels, want.Labels)) {
			t.Fatalf("%s of %q with %s, split: %+v %s, want %+v %s", p.query, text, metadata, got, got.Labels, want, want.Labels)
		}
	}
}

// moreLines have values of columns in all places.
var moreLines = []string{
	`{"ts":"2026-11-23T12:00:00.000Z","level":"info","trace":"7e8d620c962ee13d","a":"x12y34","msg":"took 15 of 20","status":200,"dur":"15.25ms","size":"2048KB","n":12.345}`,
	`{"status":1234,"a":-12.50,"dur":"1h30m12s","level":"5e8d620c962ee13d","nested":{"b":{"c":"deep 1234"},"k":[10,{"x":"20"}]},"n":1234567890123456789012}`,
	`{"a":"tail 99","key1234":1,"level":"warn","status":"404","size":12345678,"x":"\\ 55","n":10e12}`,
	`{"x":[100,200,{"a":["}]",300]}],"level":"12:30:45","a":"2026-01-02","status":true,"n":false,"msg":"é 12 ü 34"}`,
	`{"dur":"120ms","msg":"\u00e912 \"quoted 33\" end","status":503} trailing 77`,
	`2026-11-23T12:00:00Z level=info status=200 dur=15.25ms a=x12y34 n=1234 msg="took 15 of 20" path=/x/1234 size=2048KB`,
	`level=warn1234 a=12=34 b="12"c=55 n="77" 4711 lonely99 dur="" status= x="esc \" 44" path="p 10"`,
	`ts=12:30:45 trace=7e8d620c962ee13d status=404 a="unterminated 1234`,
	`n=12é34 level="é 12" status=-5.25 key1234=9 dur=100us`,
}

// TestSplitLines compares pages of lines, split, with the stages: lines of one kind, and of several.
func TestSplitLines(t *testing.T) {
	racetest.SkipSerial(t)
	written, pages := append(append(linetest.Lines(), plainLines...), moreLines...), 300
	if testing.Short() {
		pages = 60
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range newRunnerPairs(t) {
		for range pages {
			p.setStream(streamsOfPairs[r.IntN(len(streamsOfPairs))])
			metadata := metadataOfPairs[r.IntN(len(metadataOfPairs))]
			var kinds [][]byte
			for range 1 + r.IntN(4) {
				l := []byte(moreLines[r.IntN(len(moreLines))])
				switch r.IntN(3) {
				case 0:
					l = []byte(written[r.IntN(len(written))])
				case 1:
					l = changed(r, string(l))
				}
				kinds = append(kinds, l)
			}
			var texts [][]byte
			for range 100 {
				texts = append(texts, varied(r, kinds[r.IntN(len(kinds))]))
			}
			p.checkSplit(t, texts, metadata)
		}
		if p.plain < p.unlike/50 {
			t.Errorf("%s: %d lines are decided split, %d are not", p.query, p.plain, p.unlike)
		}
	}
}

// FuzzSplitLines compares pages of any two lines, whose digits vary, with the stages.
func FuzzSplitLines(f *testing.F) {
	for i, l := range moreLines {
		f.Add([]byte(l), []byte(moreLines[(i+1)%len(moreLines)]), uint64(i))
	}
	pairs := newRunnerPairs(f)
	f.Fuzz(func(t *testing.T, a, b []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		var texts [][]byte
		for range 40 {
			texts = append(texts, varied(r, a), varied(r, b))
		}
		for i, p := range pairs {
			p.setStream(streamsOfPairs[i%len(streamsOfPairs)])
			p.checkSplit(t, texts, metadataOfPairs[i%len(metadataOfPairs)])
		}
	})
}

// TestSplitForgets keys and places of pages whose lines call their fields as they like.
func TestSplitForgets(t *testing.T) {
	p := newRunnerPairs(t)[0]
	p.setStream(streamsOfPairs[0])
	for page := range 20 {
		var texts [][]byte
		for i := range 400 {
			texts = append(texts, fmt.Appendf(nil, `{"key_%c%c%c":12%d,"level":"info %d","other":3%d}`, 'a'+page, 'a'+i%26, 'a'+i/26, i, i, i))
		}
		p.checkSplit(t, texts, nil)
	}
	if p.plain == 0 {
		t.Error("no line is decided split")
	}
}

// TestSplitAllocates nothing for a line.
func TestSplitAllocates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range newRunnerPairs(t) {
		p.setStream(streamsOfPairs[0])
		for _, l := range []string{plainLines[0], plainLines[13]} {
			var texts [][]byte
			for range 200 {
				texts = append(texts, varied(r, []byte(l)))
			}
			page := splitPage(t, texts)
			p.fast.SetPage(&page.SplitText)
			var out line.Sample
			all := func() {
				for i := range texts {
					p.fast.SampleSplit(i, len(texts[i]), nil, &out)
				}
			}
			all()
			alloctest.AtMost(t, 0, 10, all)
			page.Release()
		}
	}
}
