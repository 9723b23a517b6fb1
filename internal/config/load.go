package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Sources are the places where settings come from. A later field wins over an earlier one, and defaults lose to all.
type Sources struct {
	// File is the path of a YAML file; empty means none.
	File string
	// Environ has the form of os.Environ. All variables that begin with SHALE_ must be settings, but for SHALE_CONFIG,
	// which names the file and is cmd's to read.
	Environ []string
	// Flags holds the values of the settings named in FlagsSet.
	Flags    Config
	FlagsSet []string
}

// ConfigEnv is the environment variable that names the file.
const ConfigEnv = envPrefix + "CONFIG"

// Origins say where each setting's value came from, by the setting's name: "shale.yaml:3:9", "SHALE_MEMORY",
// "--memory", "default".
type Origins map[string]string

// Load builds a configuration and validates it. All mistakes are reported in one error of class model.ErrInvalid, a
// line for each, which begins with the place of the mistake.
func Load(s Sources) (Config, Origins, error) {
	l := loader{settings: Settings(), origins: Origins{}}
	for i := range l.settings {
		l.set(&l.settings[i], l.settings[i].Default, "default")
	}
	if s.File != "" {
		l.file(s.File)
	}
	l.environ(s.Environ)
	for _, name := range s.FlagsSet {
		if at := l.find(name); at != nil {
			at.copyFrom(&l.config, &s.Flags)
			l.origins[name] = "--" + name
		}
	}
	// A value that could not be read is not also judged.
	if len(l.mistakes) == 0 {
		l.validate()
	}
	if len(l.mistakes) > 0 {
		return Config{}, nil, fmt.Errorf("%w configuration:\n%w", model.ErrInvalid, errors.Join(l.mistakes...))
	}
	return l.config, l.origins, nil
}

// Default returns the configuration of a process that is told nothing.
func Default() Config {
	c, _, err := Load(Sources{})
	if err != nil {
		panic("BUG: the defaults do not pass their own rules: " + err.Error())
	}
	return c
}

type loader struct {
	settings []Setting
	config   Config
	origins  Origins
	mistakes []error
}

func (l *loader) find(name string) *Setting {
	for i := range l.settings {
		if l.settings[i].Name == name {
			return &l.settings[i]
		}
	}
	return nil
}

func (l *loader) set(s *Setting, text, origin string) {
	if err := s.set(&l.config, text); err != nil {
		l.mistake(origin, s.Name, err)
	}
	l.origins[s.Name] = origin
}

func (l *loader) mistake(origin, name string, err error) {
	l.mistakes = append(l.mistakes, fmt.Errorf("%s: %s: %w", origin, name, err))
}

// unknown reports a name that is no setting's and shows the nearest one, both as spell writes names in that place.
func (l *loader) unknown(origin, kind, name string, spell func(*Setting) string) {
	text := fmt.Sprintf("%s: unknown %s %s", origin, kind, name)
	if near := nearest(name, l.settings, spell); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	l.mistakes = append(l.mistakes, errors.New(text))
}

func (l *loader) environ(environ []string) {
	for _, kv := range environ {
		key, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(key, envPrefix) || key == ConfigEnv {
			continue
		}
		known := false
		for i := range l.settings {
			if l.settings[i].Env == key {
				l.set(&l.settings[i], value, key)
				known = true
			}
		}
		if !known {
			l.unknown("environment", "variable", key, func(s *Setting) string { return s.Env })
		}
	}
}

func (l *loader) file(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		l.mistakes = append(l.mistakes, fmt.Errorf("config file: %w", err))
		return
	}
	l.yaml(path, data)
}
