package syntaxtest

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

var pieces = regexp.MustCompile("(?s)\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|\\w+|\\s+|.")

// stray are pieces that a mutation puts anywhere.
var stray = strings.Split("{ } ( ) [ ] [5m] , . = != =~ !~ !> |= |~ |> | == > >= < <= + - * / % ^ # // ' \" ` $ ; : ! \\ & @ é "+
	"\"x\" `y` \"(\" 'z' 1 -1 0 1.5 5m 5KB 1e999 0x1 _ a b json logfmt regexp pattern unpack unwrap line_format label_format decolorize drop keep "+
	"or and unless bool on ignoring group_left group_right by without offset ip label_replace vector bytes duration --strict --keep-empty "+
	"sum topk sort count rate count_over_time quantile_over_time avg_over_time ip(\"1\") rate({a=\"b\"}[1m]) {c=\"d\"} by(x) -5m \n \x00 \xff", " ")

// Mutate changes a query at a few places, so that most results are wrong.
func Mutate(r *rand.Rand, query string) string {
	parts := pieces.FindAllString(query, -1)
	for range 1 + r.IntN(2) {
		if len(parts) == 0 {
			parts = []string{stray[r.IntN(len(stray))]}
		}
		i, j := r.IntN(len(parts)), r.IntN(len(parts))
		switch r.IntN(6) {
		case 0:
			parts = slices.Delete(parts, i, i+1)
		case 1:
			parts = slices.Insert(parts, i, stray[r.IntN(len(stray))], " ")
		case 2:
			parts[i] = stray[r.IntN(len(stray))]
		case 3:
			parts[i], parts[j] = parts[j], parts[i]
		case 4:
			parts = slices.Insert(parts, i, parts[j])
		case 5:
			if r.IntN(3) == 0 {
				parts = parts[:i]
			} else {
				parts[i] = mutateBytes(r, parts[i])
			}
		}
	}
	return strings.Join(parts, "")
}

// Cut ends a query somewhere, with what may not stand there, so that most results are wrong at their end.
func Cut(r *rand.Rand, query string) string {
	parts := pieces.FindAllString(query, -1)
	return strings.Join(parts[:r.IntN(len(parts)+1)], "") + " " + stray[r.IntN(len(stray))]
}

func mutateBytes(r *rand.Rand, s string) string {
	if s == "" { // by the mutation before
		return s
	}
	i := r.IntN(len(s))
	if r.IntN(2) == 0 {
		return s[:i] + s[i+1:]
	}
	return s[:i] + string(rune(r.IntN(128))) + s[i:]
}
