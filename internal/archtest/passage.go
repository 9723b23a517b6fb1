package archtest

import (
	"fmt"
	"io/fs"
	"iter"
	"path"
	"regexp"
	"strings"
)

// passage is a text and the line of its file on which it begins.
type passage struct {
	line int
	text string
}

// dialect yields the line of each forbidden word, and what to write instead.
func (p passage) dialect() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		plain := strings.ToLower(strings.Join(strings.Fields(p.text), " "))
		for _, d := range dialect {
			if !strings.Contains(plain, d.key) {
				continue // the expression takes far longer to say so
			}
			for _, m := range d.word.FindAllStringIndex(p.text, -1) {
				words := strings.TrimLeft(p.text[m[0]:m[1]], " \t\n.,;:()")
				if d.except != nil && d.except.MatchString(words) {
					continue
				}
				// The line is that of the match's end: its beginning may be the last word of the line before.
				line := p.line + strings.Count(p.text[:m[1]], "\n")
				if !yield(line, fmt.Sprintf("%q: %s", strings.Join(strings.Fields(words), " "), d.plain)) {
					return
				}
			}
		}
	}
}

var (
	codeSpan    = regexp.MustCompile("`[^`\n]*`")
	link        = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	listItem    = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
	sentenceEnd = regexp.MustCompile(`[.!?]["')*]*\s+["'(*]*[A-Z0-9]`)
)

// longSentences yields the line of the paragraph and the beginning of each sentence of too many words. A list
// item, a heading and a cell of a table end a sentence; an indented example is none.
func (p passage) longSentences() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for _, par := range p.paragraphs() {
			text := par.text
			for text != "" {
				sentence := text
				if m := sentenceEnd.FindStringIndex(text); m != nil {
					sentence = text[:m[1]-1]
				}
				text = text[len(sentence):]
				if words := strings.Fields(sentence); len(words) > maxSentenceWords {
					said := fmt.Sprintf("a sentence of %d words, at most %d: %s ...", len(words), maxSentenceWords, strings.Join(words[:8], " "))
					if !yield(par.line, said) {
						return
					}
				}
			}
		}
	}
}

func (p passage) paragraphs() []passage {
	var found []passage
	open := false // whether the last paragraph goes on
	for i, line := range strings.Split(p.text, "\n") {
		line = link.ReplaceAllString(codeSpan.ReplaceAllString(line, "CODE"), "$1")
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "", strings.HasPrefix(line, "\t"), !open && strings.HasPrefix(line, "    "):
			open = false
		case strings.HasPrefix(trimmed, "|"):
			for cell := range strings.SplitSeq(trimmed, "|") {
				found = append(found, passage{p.line + i, cell})
			}
			open = false
		case open && !strings.HasPrefix(trimmed, "#") && !listItem.MatchString(line):
			found[len(found)-1].text += " " + trimmed
		default:
			found = append(found, passage{p.line + i, trimmed})
			open = !strings.HasPrefix(trimmed, "#")
		}
	}
	return found
}

// withoutCode blanks the fenced blocks and the code spans of a page, and keeps its lines.
func withoutCode(page string) string {
	lines := strings.Split(page, "\n")
	fenced := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence || fenced {
			lines[i] = ""
		}
		if fence {
			fenced = !fenced
		}
		lines[i] = codeSpan.ReplaceAllString(lines[i], "CODE")
	}
	return strings.Join(lines, "\n")
}

// pages reads the documents of the repository: those of its root, of docs and of docs/adr.
func pages(t *tree) (map[string]string, error) {
	found := map[string]string{}
	for _, dir := range []string{".", "docs", "docs/adr"} {
		names, err := fs.Glob(t.root, path.Join(dir, "*.md"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(t.root, name)
			if err != nil {
				return nil, err
			}
			found[name] = string(text)
		}
	}
	return found, nil
}
