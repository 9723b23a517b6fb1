package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Sources are the sources of settings. A later field overrides an earlier one, and all of them override
// defaults.
type Sources struct {
	// File is the path of a YAML file; empty means none.
	File string
	// Environ has the form of os.Environ. All variables that begin with SHALE_ must be settings, except
	// SHALE_CONFIG, which names the file and is read by cmd, and SHALE_TOKEN_FILE, which is for clients.
	Environ []string
	// Flags holds the values of the settings named in FlagsSet.
	Flags    Config
	FlagsSet []string
}

// ConfigEnv is the environment variable that names the file.
const ConfigEnv = envPrefix + "CONFIG"

// tokenEnv is the environment variable by which clients find their token. A profile may export it for all
// commands.
const tokenEnv = envPrefix + "TOKEN_FILE"

// Origins holds the origin of each value by the name of its setting: "shale.yaml:3:9", "SHALE_MEMORY",
// "--memory", "default".
type Origins map[string]string

// Load builds a configuration and validates it. One error of class model.ErrInvalid reports all mistakes,
// each in a line that begins with the position of the mistake.
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
		if setting := l.find(name); setting != nil {
			setting.copyFrom(&l.config, &s.Flags)
			l.origins[name] = "--" + name
		}
	}
	// Values are not validated unless all of them were parsed.
	if len(l.mistakes) == 0 {
		l.validate()
	}
	if len(l.mistakes) > 0 {
		return Config{}, nil, fmt.Errorf("%w configuration:\n%w", model.ErrInvalid, errors.Join(l.mistakes...))
	}
	return l.config, l.origins, nil
}

// Default returns the configuration of all defaults.
func Default() Config {
	c, _, err := Load(Sources{})
	if err != nil {
		panic("BUG: the defaults are invalid: " + err.Error())
	}
	return c
}

type loader struct {
	settings []Setting
	config   Config
	origins  Origins
	mistakes []error
	// inside names the section of a file of tenants; empty: the settings are those of the server.
	inside string
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
	if l.inside != "" {
		name = l.inside + "." + name
	}
	if origin == "--"+name {
		l.mistakes = append(l.mistakes, fmt.Errorf("%s: %w", origin, err))
		return
	}
	l.mistakes = append(l.mistakes, fmt.Errorf("%s: %s: %w", origin, name, err))
}

// unknown reports an unknown name and suggests the nearest one, in the spelling of its source.
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
		if !strings.HasPrefix(key, envPrefix) || key == ConfigEnv || key == tokenEnv {
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
