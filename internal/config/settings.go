package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
)

// Setting is one leaf of the tree, as text.
type Setting struct {
	// Name is the flag without its dashes, and the path of keys in the file: query.timeout.
	Name string
	// Env is the name of the environment variable.
	Env string
	// Default and Help are the texts of the tree.
	Default, Help string

	index []int // of the field, as reflect counts
}

// Settings returns all settings in the order of the tree.
func Settings() []Setting {
	var list []Setting
	walk(reflect.TypeFor[Config](), "", nil, &list)
	return list
}

func walk(t reflect.Type, prefix string, index []int, list *[]Setting) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := f.Tag.Lookup("name")
		if !ok {
			continue
		}
		at := append(append([]int(nil), index...), i)
		if p, group := f.Tag.Lookup("prefix"); group {
			walk(f.Type, prefix+p, at, list)
			continue
		}
		name = prefix + name
		*list = append(*list, Setting{
			Name: name, Env: envName(name), Default: f.Tag.Get("default"), Help: f.Tag.Get("help"), index: at,
		})
	}
}

// envPrefix begins every environment variable that is ours, so that an unknown one is an error too.
const envPrefix = "SHALE_"

func envName(setting string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(setting))
}

// set gives the setting the value that a text stands for.
func (s *Setting) set(c *Config, text string) error {
	field := reflect.ValueOf(c).Elem().FieldByIndex(s.index)
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Int, reflect.Int64:
		n, err := parseInt(text)
		if err != nil {
			return err
		}
		field.SetInt(n)
	default:
		return fmt.Errorf("the setting has the kind %s, which has no text", field.Kind())
	}
	return nil
}

// Text returns the value of the setting in a configuration.
func (s *Setting) Text(c *Config) string {
	return fmt.Sprint(reflect.ValueOf(c).Elem().FieldByIndex(s.index).Interface())
}

// copyFrom takes the setting's value over from another configuration.
func (s *Setting) copyFrom(dst, src *Config) {
	reflect.ValueOf(dst).Elem().FieldByIndex(s.index).Set(reflect.ValueOf(src).Elem().FieldByIndex(s.index))
}

// nearest returns the spelling of the setting that is most like an unknown name, or "" if none is.
func nearest(name string, all []Setting, spell func(*Setting) string) string {
	best, bestDistance := "", 1+len(name)/3
	for i := range all {
		if d := distance(name, spell(&all[i])); d < bestDistance {
			best, bestDistance = spell(&all[i]), d
		}
	}
	return best
}

// distance counts the letters to insert, drop or change between two words.
func distance(a, b string) int {
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
