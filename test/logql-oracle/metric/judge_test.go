package metric

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
)

// keyword matches the words of the language, and not those in quotes.
var keyword = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|[a-z_]+|[-+*/%^<>=!|]+")

// keywords returns the words of a query, each once.
func keywords(query string) []string {
	seen := map[string]bool{}
	for _, w := range keyword.FindAllString(query, -1) {
		if w[0] != '"' && w[0] != '`' {
			seen[w] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// judge counts equal results, and differences by their reasons.
type judge struct {
	t       *testing.T
	stage   string
	same    int
	wrong   int
	shown   int
	reasons map[string]int
	seen    map[*asked]bool
}

func (j *judge) begin(stage string) {
	j.stage, j.same, j.wrong, j.reasons = stage, 0, 0, map[string]int{}
}

func (j *judge) end(objects int) {
	j.t.Logf("%s (%d objects in the bucket): %d the same, %d wrong", j.stage, objects, j.same, j.wrong)
	for _, why := range slices.Sorted(maps.Keys(j.reasons)) {
		j.t.Logf("    %d: %s", j.reasons[why], why)
	}
	if j.wrong > 0 {
		j.t.Errorf("%s: %d results are wrong", j.stage, j.wrong)
	}
}

func (j *judge) compare(a *asked, us *logqltest.Result) {
	d := diff(a, us)
	if d == "" {
		j.same++
		return
	}
	if why := known(a, us); why != "" {
		j.reasons[why]++
		return
	}
	j.wrong++
	if j.seen == nil {
		j.seen = map[*asked]bool{}
	}
	if j.shown < *show && !j.seen[a] {
		j.shown++
		j.t.Error(shrunk(a, us, d))
	}
	j.seen[a] = true
}

func diff(a *asked, us *logqltest.Result) string {
	return logqltest.Diff(a.them, us, strings.Contains(a.query.Text, "sort"))
}

// known returns why a result differs on purpose, or "".
func known(a *asked, us *logqltest.Result) string {
	if a.them.Error == "" && us.Error == "" && (strings.Contains(a.query.Text, "topk") || strings.Contains(a.query.Text, "bottomk")) {
		return ties(a, us)
	}
	return ""
}

// ties explains a choice among equal values, which Loki makes at random: one of its results is ours, or they
// differ among themselves.
func ties(a *asked, us *logqltest.Result) string {
	differs := false
	for range 20 {
		again := a.loki.run(&a.query)
		if logqltest.Diff(again, us, false) == "" {
			return "Loki chooses among equal values at random"
		}
		differs = differs || logqltest.Diff(again, a.them, false) != ""
	}
	switch {
	case !differs:
		return ""
	case reflect.DeepEqual(a.them.Values(), us.Values()):
		return "Loki chooses among equal values at random; the values are the same"
	}
	return "Loki chooses among equal values at random, below another operation"
}

func shrunk(a *asked, us *logqltest.Result, d string) string {
	return fmt.Sprintf("%s: %s\n%s\nLoki:\n%sours:\n%s", a.data.Name, a.query.String(), d, a.them, us)
}
