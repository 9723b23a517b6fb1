package result

import (
	"fmt"
	"strings"
)

// The marks of a generated section.
const (
	beginMark = "<!-- bench: %s -->\n"
	endMark   = "<!-- bench: end -->\n"
)

// Fill replaces the named section in a page. It fails if the page has no section of that name, or the section
// has no end.
func Fill(page, name, text string) (string, error) {
	begin := fmt.Sprintf(beginMark, name)
	head, rest, ok := strings.Cut(page, begin)
	if !ok {
		return page, fmt.Errorf("the page has no section %q", strings.TrimSpace(begin))
	}
	old, tail, ok := strings.Cut(rest, endMark)
	if !ok || strings.Contains(old, "<!-- bench: ") {
		return page, fmt.Errorf("the section %q of the page has no end %q", strings.TrimSpace(begin), strings.TrimSpace(endMark))
	}
	return head + begin + text + endMark + tail, nil
}
