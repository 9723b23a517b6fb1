package rules

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/shaledb/shale/internal/carbonconf"
)

// Settings are the settings of this room.
type Settings struct {
	Blacklist string `name:"graphite.blacklist" default:"" placeholder:"FILE" help:"The file blacklist.conf of carbon: Graphite points whose path matches one of its regular expressions are dropped and counted. It is read again when it changes. Empty: none are."`
	Whitelist string `name:"graphite.whitelist" default:"" placeholder:"FILE" help:"The file whitelist.conf of carbon: if it has an expression, Graphite points whose path matches none are dropped and counted. It is read again when it changes. Empty: none are."`
	Rewrites  string `name:"graphite.rewrite-rules" default:"" placeholder:"FILE" help:"The file rewrite-rules.conf of carbon: replaces parts of the paths of Graphite points. It is read again when it changes. Empty: no rules."`
}

// Any reports whether there is a file.
func (s *Settings) Any() bool { return *s != Settings{} }

// Rules are what the files say. They never change.
type Rules struct {
	Blacklist, Whitelist List
	Rewriting            Rewriting
	Aggregations         []*Aggregation
}

// Files are the rules of the files, which may change. Several goroutines may use them.
type Files struct {
	settings Settings
	watcher  *carbonconf.Watcher
	now      atomic.Pointer[Rules]
	changed  func()
}

// Open reads the files. An error has the file and the line. The function changed, if not nil, is called each
// time that other rules are in force.
func Open(s Settings, changed func()) (*Files, error) {
	f := &Files{settings: s, watcher: carbonconf.NewWatcher(s.Blacklist, s.Whitelist, s.Rewrites), changed: changed}
	return f, f.load()
}

func (f *Files) load() error {
	r := new(Rules)
	for _, file := range []struct {
		path  string
		parse func(path string, text []byte) error
	}{
		{f.settings.Blacklist, func(path string, text []byte) (err error) { r.Blacklist, err = ParseList(path, text); return }},
		{f.settings.Whitelist, func(path string, text []byte) (err error) { r.Whitelist, err = ParseList(path, text); return }},
		{f.settings.Rewrites, func(path string, text []byte) (err error) { r.Rewriting, err = ParseRewriting(path, text); return }},
	} {
		if file.path == "" {
			continue
		}
		text, err := carbonconf.ReadFile(file.path)
		if err == nil {
			err = file.parse(file.path, text)
		}
		if err != nil {
			return err
		}
	}
	f.now.Store(r)
	if f.changed != nil {
		f.changed()
	}
	return nil
}

// Rules returns what is in force.
func (f *Files) Rules() *Rules { return f.now.Load() }

// Watch reads the files again when they change, until the context is done. Files with errors are logged, and
// change nothing.
func (f *Files) Watch(ctx context.Context, log *slog.Logger) { f.watcher.Run(ctx, log, f.load) }
