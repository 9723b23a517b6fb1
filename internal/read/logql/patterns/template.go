package patterns

import (
	"bytes"
	"unicode/utf8"
)

const wildcard = "<_>"

// cluster is a template with the times of its lines.
type cluster struct {
	// text is as much of the first line as its tokens cover, and spans are the words in it.
	text  []byte
	spans []span
	words []uint64 // the hashes of the words; 0: a wildcard
	open  bool     // the line goes on: the pattern ends with a wildcard

	structure uint64
	counts    []bucket
	pattern   string // rendered, or empty
	used      uint64 // when it last got a line, in lines of its miner
}

// clusterBytes is about what a cluster takes besides its text, words and counts.
const clusterBytes = 224

func newCluster(t *tokens) *cluster {
	c := &cluster{
		text: bytes.Clone(t.text), spans: append([]span(nil), t.spans...), words: append([]uint64(nil), t.words...),
		open: t.open, structure: t.structure,
	}
	for i, s := range c.spans {
		// A word that is not text cannot be shown, and a name in angle brackets would be read as a capture.
		if !utf8.Valid(c.text[s.begin:s.end]) || c.isCapture(s) {
			c.words[i] = 0
		}
	}
	return c
}

// isCapture reports whether a word is directly between < and >.
func (c *cluster) isCapture(s span) bool {
	return s.begin > 0 && c.text[s.begin-1] == '<' && int(s.end) < len(c.text) && c.text[s.end] == '>'
}

// size is about the memory of the cluster, with the rendered pattern.
func (c *cluster) size() int64 {
	return clusterBytes + 2*int64(len(c.text)) + 12*int64(len(c.words)) + bucketBytes*int64(cap(c.counts))
}

// similarity returns how many words of a line are those of the template, and whether the line is similar: at
// least half of the words that tell anything are the same. Wildcards tell nothing, and neither does a place
// where both have different words with digits: those are numbers, times or identifiers.
func (c *cluster) similarity(words []uint64) (same int, similar bool) {
	told, agree := 0, 0
	for i, w := range c.words {
		switch {
		case w == words[i]:
			same++
			if w&1 == 0 {
				told++
				agree++
			}
		case w != 0 && w&words[i]&1 == 0:
			told++
		}
	}
	return same, 2*agree >= told
}

// merge makes wildcards of the words in which a line differs.
func (c *cluster) merge(words []uint64) {
	for i, w := range c.words {
		if w != 0 && w != words[i] {
			c.words[i], c.pattern = 0, ""
		}
	}
}

// String returns the pattern in the form that |> reads. Wildcards with only a colon between them, as in times
// of day, become one, unless a colon follows.
func (c *cluster) String() string {
	if c.pattern != "" {
		return c.pattern
	}
	var out []byte
	next := 0 // the first byte of the text that is not written
	for i := 0; i < len(c.spans); i++ {
		if c.words[i] != 0 {
			continue
		}
		out = append(append(out, c.text[next:c.spans[i].begin]...), wildcard...)
		last := i
		for last+1 < len(c.spans) && c.words[last+1] == 0 && string(c.text[c.spans[last].end:c.spans[last+1].begin]) == ":" {
			last++
		}
		if end := int(c.spans[last].end); last > i && (end == len(c.text) || c.text[end] != ':') {
			i = last
		}
		next = int(c.spans[i].end)
	}
	out = append(out, c.text[next:]...)
	if c.open && !bytes.HasSuffix(out, []byte(wildcard)) {
		out = append(out, wildcard...)
	}
	c.pattern = string(out)
	return c.pattern
}
