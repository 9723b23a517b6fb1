package part

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/shaledb/shale/internal/model"
)

func FuzzOpenCheck(f *testing.F) {
	f.Add(smallPart(f, Fast))
	f.Add(smallPart(f, Dense))
	_, empty := writePart(f, nil, testOptions(false, Fast))
	f.Add(empty)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := openAndCheck(reseal(b)); err != nil && !errors.Is(err, model.ErrCorrupt) && !errors.Is(err, model.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

// reseal makes the checksums of tail and footer right, so that a changed footer is looked at.
func reseal(b []byte) []byte {
	n := len(b)
	if n < headerBytes+tailBytes+envelopeMin {
		return b
	}
	b = bytes.Clone(b)
	tail := b[n-tailBytes:]
	binary.LittleEndian.PutUint32(tail[8:], checksum(tail[:8]))
	if size := int(binary.LittleEndian.Uint32(tail)); size >= envelopeMin && size <= n-tailBytes-headerBytes {
		page := b[n-tailBytes-size : n-tailBytes]
		binary.LittleEndian.PutUint32(page[size-crcBytes:], checksum(page[:size-crcBytes]))
	}
	return b
}

func FuzzDecodePage(f *testing.F) {
	for _, codec := range []byte{codecNone, codecS2, codecZstd} {
		for _, payload := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("shale"), 1000)} {
			stored, err := sealPage(nil, payload, codec)
			must(f, err)
			f.Add(stored)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksum is made right, so that what lies behind it is reached.
		if len(b) >= crcBytes {
			b = binary.LittleEndian.AppendUint32(b[:len(b)-crcBytes:len(b)-crcBytes], checksum(b[:len(b)-crcBytes]))
		}
		payload, err := DecodePage(b)
		if err != nil {
			if !errors.Is(err, model.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if len(payload) > maxPageBytes {
			t.Fatalf("%d bytes", len(payload))
		}
	})
}

// FuzzPayloads gives bytes to every decoder of a page's payload.
func FuzzPayloads(f *testing.F) {
	for _, level := range []Compression{Fast, Dense} {
		whole := smallPart(f, level)
		r, err := Open(context.Background(), bytes.NewReader(whole), int64(len(whole)))
		must(f, err)
		for _, s := range sections {
			for i := range r.footer.index[s.number] {
				payload, err := r.pages.Page(context.Background(), r.footer.index[s.number][i].addr)
				must(f, err)
				f.Add(payload)
				entries, err := r.Entries(context.Background(), nil, s, i)
				must(f, err)
				for k := range entries {
					for _, a := range []Addr{entries[k].addr, entries[k].linesAddr(), entries[k].text.filter} {
						if a.Len > 0 && (a == entries[k].addr || s.form == unitEntries) {
							payload, err := r.pages.Page(context.Background(), a)
							must(f, err)
							f.Add(payload)
						}
					}
				}
			}
		}
		f.Add(r.footer.append(nil, sections))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readFooter(b, 1<<20, sections)
		for _, s := range sections {
			entries, err := readIndexPage(nil, b, s, 1<<20)
			var index indexDir
			if index.open(b, s, 1<<20) != nil {
				continue
			}
			for i := index.count - 1; i >= 0; i -= 1 + index.count/10 {
				// Of a page that does not check out a part may.
				if index.seek(i) == nil && err == nil && index.entry.addr != entries[i].addr {
					t.Fatalf("entry %d: %+v, should be %+v", i, index.entry, entries[i])
				}
				found, searchErr := index.search(func(e *pageEntry) bool { return e.addr.Off > 1<<19 })
				if err == nil && (searchErr != nil || found != (entries[index.count-1].addr.Off > 1<<19)) {
					t.Fatalf("found %v, %v", found, searchErr)
				}
			}
		}
		var keys keyDir
		if keys.open(b) == nil {
			_, _ = keys.seek(model.Key{Hi: 1 << 60})
			for hi := range uint64(64) {
				_, _, _ = keys.find(model.Key{Hi: hi << 58, Lo: hi})
			}
			for i := range keys.count {
				_ = keys.load(i)
			}
		}
		var labels labelDir
		if labels.open(b) == nil {
			for i := labels.count - 1; i >= 0; i -= 1 + labels.count/10 {
				if labels.seek(i) != nil {
					break
				}
			}
		}
		var lists postingDir
		if lists.open(b) == nil {
			for ok, err := lists.next(); ok && err == nil; ok, err = lists.next() {
				_ = lists.runs(1000, func(from, to uint32) {
					if from >= to || to > 1000 {
						t.Fatalf("run [%d, %d)", from, to)
					}
				})
			}
		}
		var masks maskDir
		_ = masks.open(b)
		var unit textUnit
		if unit.open(b) == nil {
			unit.lines = make([]byte, unit.lineBytes())
			var rows model.TextRows
			for i := range unit.counts {
				unit.view(i, &rows)
				for k := range rows.Times {
					if rows.MetadataAt(k).Check() != nil {
						t.Fatal("metadata is not canonical")
					}
				}
			}
		}
		var filters filterPage
		if filters.open(b, Addr{}) == nil {
			slices := make([][]byte, filters.slices)
			for i := range slices {
				slices[i] = make([]byte, filters.length)
				for k := range slices[i] {
					slices[i][k] = byte(spread(uint64(i*filters.length+k)) | spread(uint64(k)))
				}
			}
			for i := range filters.filters {
				filter, err := filters.appendFilter(nil, uint32(i), slices)
				must(t, err)
				var x itemFilter
				must(t, x.open(filter))
				for item := range uint64(2 * filterParts) {
					class, item := byte(item)%itemClasses, spread(item)|item<<33
					var slice []byte
					if len(slices) > 0 {
						slice = slices[filters.sliceOf(item)]
					}
					if x.has(class, item) != filters.has(i, class, item, slice) {
						t.Fatalf("filter %d, class %d: it has an item by itself or among others, but not both", i, class)
					}
				}
			}
		}
		for _, dir := range []rowDir{&sampleDir{}, &exemplarDir{}} {
			if dir.open(b) != nil {
				continue
			}
			var rows model.Rows
			_, ranks, _ := dir.span()
			for i := range ranks {
				_ = dir.appendRows(i, anyTime, &rows)
				rows.Reset()
			}
			_, _, _ = dir.extent()
		}
	})
}

// FuzzHistograms writes histograms and floats as one series and reads them again, and reads a segment of anything. In the
// input a byte tells the length of what follows it: a histogram if it is one, else a float.
func FuzzHistograms(f *testing.F) {
	var all []byte
	var h model.Histogram
	for i := range 20 {
		randomHistogram(rand.New(rand.NewPCG(1, uint64(i/9))), &h)
		h.Count += uint64(i)
		if b := model.AppendHistogram(nil, &h); len(b) < 256 {
			all = append(append(all, byte(len(b))), b...)
		}
		if i%7 == 0 {
			all = append(all, 1, byte(i))
		}
	}
	f.Add(all, false)
	f.Add(all[:200], true)
	f.Fuzz(func(t *testing.T, b []byte, dense bool) {
		var rows, got model.Rows
		for rest := b; len(rest) > 0; {
			n := min(int(rest[0]), len(rest)-1)
			blob := rest[1 : 1+n]
			at := int64(rows.Len())
			if h.Parse(blob) == nil && checkHistogram(&h) == "" {
				rows.AppendBlob(at, model.KindHistogram, blob, 0)
			} else {
				rows.Append(at, xxh3.Hash(blob), 0)
			}
			rest = rest[1+n:]
		}
		n := rows.Len()
		if n == 0 || n > maxSeriesRows {
			return
		}
		values := valueCoder{ints: intCoder{dense: dense}}
		var c histogramCoder
		segment, err := c.append(nil, &rows, 0, n, &values)
		must(t, err)
		var d histogramDecoder
		d.layouts, err = readLayouts(nil, c.layouts.append(nil))
		must(t, err)
		var decoder valueDecoder
		must(t, d.open(segment, n, &decoder))
		for k := range n {
			must(t, d.appendRow(k, int64(k), 0, &got))
		}
		if !sameRows(&got, &rows) {
			t.Fatalf("%v, should be %v", got, rows)
		}
		if err := d.open(b, n, &decoder); err == nil {
			for k := range n {
				must(t, d.appendRow(k, int64(k), 0, &got))
			}
		} else if !errors.Is(err, model.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

// FuzzLines gives lines to the codec of lines, and bytes to its decoder.
func FuzzLines(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for shape := range len(lineShapes) + 1 {
		lines, _ := joinLines(randomLines(rnd, 20, shape))
		f.Add(bytes.ReplaceAll(lines, []byte("}{"), []byte("}\n{")), 300)
		all, ends := joinLines(randomLines(rnd, 20, shape))
		var c fieldCoder
		if coded, ok := c.append(nil, all, 0, ends, nil); ok {
			f.Add(coded, len(all))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, raw int) {
		var all []byte
		var ends []uint32
		for _, l := range bytes.Split(b, []byte("\n")) {
			all = append(all, l...)
			ends = append(ends, uint32(len(all)))
		}
		var d fieldDecoder
		var items filterItems
		items.reset()
		c := fieldCoder{ints: intCoder{dense: raw%2 == 0}}
		if coded, ok := c.append(nil, all, 0, ends, &items); ok {
			if got, err := d.decode(coded, len(all), 0, len(all)); err != nil || !bytes.Equal(got, all) {
				t.Fatalf("%q became %q, %v", all, got, err)
			}
			skip := raw & math.MaxInt32 % len(ends)
			end := all[ends[skip]:]
			if got, err := d.decode(coded, len(all), skip+1, len(end)); err != nil || !bytes.Equal(got, end) {
				t.Fatalf("%q without %d lines became %q, %v", all, skip+1, got, err)
			}
		}
		if filter := items.append(nil, 1000*len(all)); len(filter) > 0 {
			if err := items.in(filter); err != nil {
				t.Fatalf("%q: %v", b, err)
			}
		}
		if raw = raw & (1<<20 - 1); raw > 0 {
			// The checksum of the columns is made right.
			s := scan{b: bytes.Clone(b)}
			if s.bytes(); len(s.b) > envelopeMin {
				body := s.b[:len(s.b)-crcBytes]
				binary.LittleEndian.PutUint32(s.b[len(body):], checksum(body))
				b = append(bytes.Clone(b[:len(b)-len(s.b)]), s.b...)
			}
			if got, err := d.decode(b, raw, 0, raw); err == nil && len(got) != raw || err != nil && !errors.Is(err, model.ErrCorrupt) {
				t.Fatalf("%d bytes of %d: %v", len(got), raw, err)
			}
			if got, err := d.decode(b, raw, raw%7, raw/2); err == nil && len(got) != raw/2 || err != nil && !errors.Is(err, model.ErrCorrupt) {
				t.Fatalf("%d bytes of the last %d: %v", len(got), raw/2, err)
			}
		}
	})
}

func FuzzInts(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<63), true)
	f.Add(bytes.Repeat([]byte{99, 0, 0, 0, 0, 0, 0, 0}, 9), true)
	var steps []byte
	for i := range uint64(60) {
		steps = binary.LittleEndian.AppendUint64(steps, i/3*0x9e3779b97f4a7c15>>20)
	}
	f.Add(steps, true)
	f.Fuzz(func(t *testing.T, b []byte, dense bool) {
		var xs []int64
		for i := 0; i+8 <= len(b); i += 8 {
			xs = append(xs, int64(binary.LittleEndian.Uint64(b[i:])))
		}
		c := intCoder{dense: dense}
		enc := c.append(nil, xs)
		var d intDecoder
		s := scan{b: enc}
		got := d.append(nil, &s, len(xs))
		if err := s.end("ints"); err != nil || !slices.Equal(got, xs) {
			t.Fatalf("%v: %v, %v", xs, got, err)
		}
		// And as a column of anything.
		s = scan{b: b}
		if n := len(d.append(nil, &s, 100)); !s.bad && n != 100 {
			t.Fatalf("%d numbers of 100", n)
		}
	})
}

func FuzzValues(f *testing.F) {
	f.Add([]byte{}, true)
	var seed []byte
	for i := range 40 {
		seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(float64(i)/10))
	}
	f.Add(seed, false)
	for _, v := range specials {
		seed = binary.LittleEndian.AppendUint64(seed, v)
	}
	f.Add(seed, true)
	for i := range 40 {
		seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(math.Sqrt(float64(i))))
	}
	f.Add(seed[320:], true)
	var sums []byte
	sum := 0.0
	for i := range 40 {
		sum += float64(i*i*1234567+1) / 1e9
		sums = binary.LittleEndian.AppendUint64(sums, math.Float64bits(sum))
	}
	f.Add(sums, true)
	f.Fuzz(func(t *testing.T, b []byte, dense bool) {
		var values []uint64
		for i := 0; i+8 <= len(b); i += 8 {
			values = append(values, binary.LittleEndian.Uint64(b[i:]))
		}
		var d valueDecoder
		if len(values) > 0 {
			c := valueCoder{ints: intCoder{dense: dense}}
			enc := c.append(nil, values)
			if len(enc) > 1+8*len(values) {
				t.Fatalf("%d bytes for %d values", len(enc), len(values))
			}
			got, err := d.append(nil, enc, len(values))
			if err != nil || !slices.Equal(got, values) {
				t.Fatalf("%x: %x, %v", values, got, err)
			}
		}
		if got, err := d.append(nil, b, 50); err == nil && len(got) != 50 {
			t.Fatalf("%d values of 50", len(got))
		}
	})
}
