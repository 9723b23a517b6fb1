package series

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

var openMetricsTag = regexp.MustCompile(`^([^=]+)="((?:\\["\\]|[^"\\])+)"(?::?,|$)`)

// ParseTags reads the tags of a name: metric;tag=value or metric{tag="value"}. The tag "name" is the metric.
func ParseTags(path string) (map[string]string, error) {
	var metric string
	tags := map[string]string{}
	add := func(tag, value string) error {
		switch {
		case tag == "" || value == "":
			return fmt.Errorf("%w: the path %q has an empty tag or value", model.ErrInvalid, path)
		case strings.ContainsAny(tag, ";!^="), strings.Contains(value, ";"), value[0] == '~':
			return fmt.Errorf("%w: the path %q has a forbidden character in the tag %q", model.ErrInvalid, path, tag)
		}
		tags[tag] = value
		return nil
	}
	if open := strings.IndexByte(path, '{'); open >= 0 && strings.HasSuffix(path, `"}`) {
		metric = path[:open]
		for rest := path[open+1 : len(path)-1]; rest != ""; {
			m := openMetricsTag.FindStringSubmatch(rest)
			if m == nil {
				return nil, fmt.Errorf("%w: the path %q has an invalid segment %q", model.ErrInvalid, path, rest)
			}
			if err := add(m[1], strings.ReplaceAll(strings.ReplaceAll(m[2], `\"`, `"`), `\\`, `\`)); err != nil {
				return nil, err
			}
			rest = rest[len(m[0]):]
		}
	} else {
		segments := strings.Split(path, ";")
		metric = segments[0]
		for _, segment := range segments[1:] {
			tag, value, _ := strings.Cut(segment, "=")
			if err := add(tag, value); err != nil {
				return nil, err
			}
		}
	}
	name := strings.TrimLeft(metric, "~")
	if name == "" {
		return nil, fmt.Errorf("%w: the path %q has no metric", model.ErrInvalid, path)
	}
	tags["name"] = name
	return tags, nil
}

// FormatTags returns the path of a tagged series: its metric, then its tags in the order of their texts.
func FormatTags(metric string, tags map[string]string) string {
	pairs := make([]string, 0, len(tags))
	for tag, value := range tags {
		if tag != "name" {
			pairs = append(pairs, ";"+tag+"="+value)
		}
	}
	slices.Sort(pairs)
	return metric + strings.Join(pairs, "")
}
