package auth

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var timings = flag.Int("timings", 0, "measurements of each kind of token in TestTiming; 0: none. 300000 take half a minute")

// mostT is the largest t of Welch's test for which two distributions count as equal. It is 4.5 in dudect, on
// a machine that does nothing else; a busy one gave up to 5.2, in either direction.
const mostT = 10

// distribution is of the times of one kind of token, without the slower half, in which a busy machine did
// something else.
type distribution struct {
	n                  int
	mean, variance     float64
	median, percentile time.Duration
}

func distributionOf(times []time.Duration) (d distribution) {
	slices.Sort(times)
	d.median, d.percentile = times[len(times)/2], times[len(times)*99/100]
	times = times[:len(times)/2]
	d.n = len(times)
	for _, t := range times {
		d.mean += float64(t) / float64(d.n)
	}
	for _, t := range times {
		d.variance += (float64(t) - d.mean) * (float64(t) - d.mean) / float64(d.n-1)
	}
	return d
}

// t is that of Welch's test.
func (d distribution) t(o distribution) float64 {
	return (d.mean - o.mean) / math.Sqrt(d.variance/float64(d.n)+o.variance/float64(o.n))
}

// TestTiming compares how long the check of a token takes that shares its first bytes with a right one. A
// comparison that ends at the first difference is measured in the same way, and must be found.
func TestTiming(t *testing.T) {
	if *timings == 0 {
		t.Skip("it measures for long: -timings 300000")
	}
	const right = "shale_ttjoywr7ob6chmqfpa3kta6zas62dtpr"
	keys, err := ParseKeys([]byte("tokens:\n" + line("reader", right, "a", "read", "")))
	if err != nil {
		t.Fatal(err)
	}
	naive := func(token string) bool {
		for i := range min(len(token), len(right)) {
			if token[i] != right[i] {
				return false
			}
		}
		return len(token) == len(right)
	}
	shares := []int{0, 1, len(right) / 2, len(right) - 1}
	// Many tokens of each kind, mixed in memory: the table of hashes misses one a little sooner than another,
	// and the cache of the processor has one and not another, whatever their first bytes are.
	const many, room = 4096, 64
	tokens := make([][]string, many)
	var memory strings.Builder
	for k := range tokens {
		tokens[k] = make([]string, len(shares))
		for _, i := range rand.Perm(len(shares)) {
			begin := memory.Len()
			memory.WriteString(right[:shares[i]])
			for memory.Len() < begin+len(right) {
				memory.WriteByte(byte('A' + rand.IntN(26))) // no such letter is in the right one
			}
			memory.WriteString(strings.Repeat(" ", room-len(right)))
			tokens[k][i] = strconv.Itoa(begin)
		}
	}
	for k := range tokens {
		for i, at := range tokens[k] {
			begin, _ := strconv.Atoi(at)
			tokens[k][i] = memory.String()[begin : begin+len(right)]
		}
	}
	found, next := 0, 0
	measure := func(name string, check func(string) bool) (worst float64) {
		times := make([][]time.Duration, len(shares))
		for range *timings * len(shares) {
			i := rand.IntN(len(shares))
			begin := time.Now()
			for range 32 { // one check is shorter than the clock can tell
				if next++; check(tokens[next%many][i]) {
					found++
				}
			}
			times[i] = append(times[i], time.Since(begin))
		}
		var first distribution
		for i, n := range shares {
			d := distributionOf(times[i])
			if i == 0 {
				first = d
			}
			text := fmt.Sprintf("%s, %d of %d bytes shared: median %v, 99 %% below %v for 32 checks", name, n, len(right), d.median, d.percentile)
			if i > 0 {
				text += fmt.Sprintf(", t %.2f", d.t(first))
				worst = max(worst, math.Abs(d.t(first)))
			}
			t.Log(text)
		}
		return worst
	}
	if worst := measure("Shale's check", func(token string) bool { return keys.Find(token) != nil }); worst > mostT {
		t.Errorf("the times differ: t is %.2f, more than %v", worst, mostT)
	}
	if worst := measure("a naive comparison", naive); worst <= mostT {
		t.Errorf("a comparison that ends at the first difference is not found: t is %.2f", worst)
	}
	if found > 0 {
		t.Errorf("%d wrong tokens were let in", found)
	}
}
