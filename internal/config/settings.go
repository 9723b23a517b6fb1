package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Setting is one leaf of the tree.
type Setting struct {
	// Name is the flag without its dashes, and the path of keys in the file: query.timeout.
	Name string
	// Env is the name of the environment variable.
	Env string
	// Default and Help are the texts of the tree.
	Default, Help string

	kind     string // the tag type
	min, max string // the tags; empty: no bound
	index    []int  // of the field, as reflect counts
	// ofTenant says that a tenant may have its own value: the tag tenant.
	ofTenant bool
}

// Settings returns all settings in the order of the tree.
func Settings() []Setting {
	var list []Setting
	walk(reflect.TypeFor[Config](), nil, &list)
	return list
}

func walk(t reflect.Type, index []int, list *[]Setting) {
	for i := range t.NumField() {
		f := t.Field(i)
		path := append(slices.Clone(index), i)
		if _, embedded := f.Tag.Lookup("embed"); embedded {
			walk(f.Type, path, list)
			continue
		}
		name, ok := f.Tag.Lookup("name")
		if !ok {
			continue
		}
		*list = append(*list, Setting{
			Name: name, Env: envName(name), Default: f.Tag.Get("default"), Help: f.Tag.Get("help"),
			kind: f.Tag.Get("type"), min: f.Tag.Get("min"), max: f.Tag.Get("max"), index: path, ofTenant: f.Tag.Get("tenant") == "own",
		})
	}
}

// envPrefix begins the names of all variables of Shale, so that an unknown one is an error.
const envPrefix = "SHALE_"

func envName(setting string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(setting))
}

func (s *Setting) field(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(s.index)
}

// set parses a text into the setting.
func (s *Setting) set(c *Config, text string) error { return Parse(s.kind, text, s.field(c)) }

// Text returns the value of the setting in a configuration.
func (s *Setting) Text(c *Config) string {
	field := s.field(c)
	switch s.kind {
	case kindSize:
		return Size(field.Int()).String()
	case kindTime:
		return Duration(field.Int()).String()
	case kindCount:
		return strconv.FormatInt(field.Int(), 10)
	}
	return fmt.Sprint(field.Interface())
}

// isList reports whether the value of the setting is a list, which has the same form in JSON and YAML.
func (s *Setting) isList(c *Config) bool {
	_, ok := s.field(c).Interface().(interface{ IsList() })
	return ok
}

// checkBounds returns an error for a value outside the bounds of its tags.
func (s *Setting) checkBounds(c *Config) error {
	field := s.field(c)
	if s.min != "" {
		least := reflect.New(field.Type()).Elem()
		if err := Parse(s.kind, s.min, least); err != nil {
			return fmt.Errorf("BUG: tag min: %w", err)
		}
		if field.Int() < least.Int() {
			if s.max != "" {
				return fmt.Errorf("%s is out of range: must be between %s and %s", s.Text(c), s.min, s.max)
			}
			return fmt.Errorf("%s is too small: must be at least %s", s.Text(c), s.min)
		}
	}
	if s.max != "" {
		most := reflect.New(field.Type()).Elem()
		if err := Parse(s.kind, s.max, most); err != nil {
			return fmt.Errorf("BUG: tag max: %w", err)
		}
		if field.Int() > most.Int() {
			return fmt.Errorf("%s is out of range: must be between %s and %s", s.Text(c), s.min, s.max)
		}
	}
	return nil
}

// copyFrom copies the value of the setting from another configuration.
func (s *Setting) copyFrom(dst, src *Config) {
	s.field(dst).Set(s.field(src))
}

// nearest returns the spelling of the setting that is most similar to an unknown name, or "" if none is
// similar.
func nearest(name string, all []Setting, spell func(*Setting) string) string {
	best, bestDistance := "", 1+len(name)/3
	for i := range all {
		if d := Distance(name, spell(&all[i])); d < bestDistance {
			best, bestDistance = spell(&all[i]), d
		}
	}
	return best
}

// Distance returns the number of letters to insert, delete or change between two words.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
