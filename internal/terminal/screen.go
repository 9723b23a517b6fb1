package terminal

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Screen is what text is shown on.
type Screen struct {
	Width, Height int
	Colour        bool // escape sequences may set colours
	UTF8          bool
}

// NewScreen returns what an output shows. A terminal says its size, and it shows colours unless NO_COLOR is
// set. Any other output has the size that COLUMNS and LINES say, or that of the smallest usual terminal. The
// locale says whether characters are UTF-8; without a locale they are ASCII.
func NewScreen(out io.Writer, environ []string) Screen {
	env := make(map[string]string, len(environ))
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	s := Screen{Width: positive(env["COLUMNS"], 80), Height: positive(env["LINES"], 24)}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set counts, as in POSIX
		if locale := strings.ToLower(env[name]); locale != "" {
			s.UTF8 = strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
			break
		}
	}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
		s.Width, s.Height = width, height
	}
	s.Colour = env["NO_COLOR"] == "" && env["TERM"] != "dumb"
	return s
}

func positive(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return otherwise
}
