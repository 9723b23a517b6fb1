package whisperimport

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/model"
)

const (
	suffix = ".wsp"
	// tagged is the folder of series with tags. Carbon puts them below two folders of their hash.
	tagged = "_tagged"
	dot    = "_DOT_"
)

// Names finds the names of files.
type Names struct {
	// hashed has the names of tagged series by their hash, which carbon can use as the name of a file.
	hashed map[string]string
}

// maxHashed bounds the names of ReadNames, and so its memory.
const maxHashed = 20 << 20

// ReadNames reads names of tagged series from a file, one on a line. Without a path there are none.
func ReadNames(path string) (n *Names, err error) {
	n = &Names{hashed: map[string]string{}}
	if path == "" {
		return n, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	defer f.Close() // it was only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name := strings.TrimSpace(lines.Text()); name != "" {
			n.hashed[hash(name)] = name
		}
		if len(n.hashed) > maxHashed {
			return nil, fmt.Errorf("%w: %s has more than %d names", model.ErrInvalid, path, maxHashed)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", model.ErrInvalid, path, err)
	}
	return n, nil
}

func hash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// Of returns the name of a file by its path below the folder of all files, with slashes. An error of class
// invalid says why it has none.
func (n *Names) Of(file string) (string, error) {
	file = strings.TrimSuffix(file, suffix)
	name := strings.ReplaceAll(file, "/", ".")
	if rest, ok := strings.CutPrefix(file, tagged+"/"); ok {
		var err error
		if name, err = n.tagged(rest); err != nil {
			return "", err
		}
	}
	if !utf8.ValidString(name) {
		return "", fmt.Errorf("%w: the path is not UTF-8", model.ErrInvalid)
	}
	return name, nil
}

// tagged returns the name of a tagged series. Its file is in folders of the first digits of its hash, and is
// called by the name, whose dots are written as _DOT_, or by the hash.
func (n *Names) tagged(rest string) (string, error) {
	base := path.Base(rest)
	if name, ok := n.hashed[base]; ok {
		return name, nil
	}
	if !strings.Contains(base, ";") {
		return "", fmt.Errorf("%w: the file of a tagged series is called by its hash: name a file of all tagged series with --tagged-names", model.ErrInvalid)
	}
	name := strings.ReplaceAll(base, dot, ".")
	if h := hash(name); path.Dir(rest) != h[:3]+"/"+h[3:6] {
		return "", fmt.Errorf("%w: the file of a tagged series is in the folder %s, but %q has the hash %s", model.ErrInvalid, path.Dir(rest), name, h)
	}
	return name, nil
}

// labelsOf splits a name as the receiver of Graphite does: a name that has malformed tags is a name as a
// whole.
func labelsOf(name string) labels.Labels {
	parts := strings.Split(name, ";")
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, tag := range parts[1:] {
		key, value, ok := strings.Cut(tag, "=")
		if !ok || key == "" || value == "" || strings.ContainsAny(key, "!^") || value[0] == '~' || key == model.NameLabel || parts[0] == "" {
			return labels.FromStrings(model.NameLabel, name)
		}
		if key != "name" {
			b.Set(key, value)
		}
	}
	return b.Set(model.NameLabel, strings.TrimLeft(parts[0], "~")).Labels()
}
