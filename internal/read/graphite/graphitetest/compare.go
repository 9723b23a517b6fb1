package graphitetest

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Line is a series of a JSON response.
type Line struct {
	Target     any               `json:"target"`
	Tags       map[string]string `json:"tags"`
	Datapoints [][2]*float64     `json:"datapoints"`
}

// Verdict says how a response compares with graphite-web's.
type Verdict int

// The verdicts.
const (
	Same     Verdict = iota
	BothFail         // graphite-web fails, and Shale refuses the request
	Lenient          // graphite-web fails, and Shale answers
	Different
)

// Compare compares a JSON response with graphite-web's: names, tags, order, times and gaps exactly, and
// values within 1e-9 of each other. If they are different, it says where.
func Compare(want, got Answer) (Verdict, string) {
	switch {
	case want.Status != 200 && got.Status >= 400 && got.Status < 500:
		return BothFail, ""
	case want.Status != 200 && got.Status == 200:
		return Lenient, fmt.Sprintf("graphite-web: %d %.200s", want.Status, want.Body)
	case want.Status != got.Status:
		return Different, fmt.Sprintf("status %d, want %d and %.20s: %.300s", got.Status, want.Status, want.Body, got.Body)
	}
	if diff := compare(want, got, func(a, b string) bool { return a == b }); diff != "" {
		return Different, diff
	}
	return Same, ""
}

// SameNumbers reports whether two responses are the same but for how numbers in names and tags are written:
// 1 for 1.0, or a sum with another last digit.
func SameNumbers(want, got Answer) bool {
	return want.Status == 200 && got.Status == 200 && compare(want, got, sameNumbers) == ""
}

var numeral = regexp.MustCompile(`\d+(\.\d+)?(e[+-]?\d+)?`)

func sameNumbers(a, b string) bool {
	as, bs := numeral.FindAllString(a, -1), numeral.FindAllString(b, -1)
	if len(as) != len(bs) || numeral.ReplaceAllString(a, "0") != numeral.ReplaceAllString(b, "0") {
		return false
	}
	for i := range as {
		x, _ := strconv.ParseFloat(as[i], 64)
		y, _ := strconv.ParseFloat(bs[i], 64)
		if as[i] != bs[i] && !near(x, y) {
			return false
		}
	}
	return true
}

func compare(want, got Answer, same func(a, b string) bool) string {
	theirs, err := lines(want.Body)
	if err != nil {
		return "graphite-web's body: " + err.Error()
	}
	ours, err := lines(got.Body)
	if err != nil {
		return "body: " + err.Error()
	}
	if len(theirs) != len(ours) {
		return fmt.Sprintf("%d series, want %d: %s, want %s", len(ours), len(theirs), names(ours), names(theirs))
	}
	for i := range theirs {
		if diff := differ(&theirs[i], &ours[i], same); diff != "" {
			return fmt.Sprintf("series %d (%v): %s", i, ours[i].Target, diff)
		}
	}
	return ""
}

func lines(body string) (all []Line, err error) {
	body = strings.NewReplacer("-1e9999", "-1.7e308", "1e9999", "1.7e308", "[NaN,", "[null,").Replace(body)
	err = json.Unmarshal([]byte(body), &all)
	return all, err
}

func names(all []Line) string {
	var texts []string
	for _, l := range all {
		texts = append(texts, fmt.Sprint(l.Target))
	}
	return strings.Join(texts, " | ")
}

func differ(want, got *Line, same func(a, b string) bool) string {
	if !same(fmt.Sprint(want.Target), fmt.Sprint(got.Target)) {
		return fmt.Sprintf("want the name %v", want.Target)
	}
	if !same(fmt.Sprint(want.Tags), fmt.Sprint(got.Tags)) {
		return fmt.Sprintf("tags %v, want %v", got.Tags, want.Tags)
	}
	if len(want.Datapoints) != len(got.Datapoints) {
		return fmt.Sprintf("%d points, want %d: %s, want %s", len(got.Datapoints), len(want.Datapoints), few(got), few(want))
	}
	for i := range want.Datapoints {
		w, g := want.Datapoints[i], got.Datapoints[i]
		if w[1] == nil || g[1] == nil || *w[1] != *g[1] || (w[0] == nil) != (g[0] == nil) || w[0] != nil && !near(*w[0], *g[0]) {
			return fmt.Sprintf("point %d: %s, want %s", i, point(g), point(w))
		}
	}
	return ""
}

// near reports whether two values are equal to 1e-9. Sums of large values with both signs may differ by a
// share of the last digit of the largest, which the floor allows for.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) || math.Abs(a-b) <= 1e-12
}

func point(p [2]*float64) string {
	text := slices.Clone([]string{"null", "null"})
	for i, v := range p {
		if v != nil {
			text[i] = fmt.Sprint(*v)
		}
	}
	return "[" + strings.Join(text, ", ") + "]"
}

func few(l *Line) string {
	var texts []string
	for i, p := range l.Datapoints {
		if i < 3 || i >= len(l.Datapoints)-2 {
			texts = append(texts, point(p))
		}
	}
	return strings.Join(texts, " ")
}
