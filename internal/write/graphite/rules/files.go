package rules

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/filewatch"
)

// Settings are the settings of this room.
type Settings struct {
	Blacklist string `name:"graphite.blacklist" default:"" placeholder:"FILE" help:"The file blacklist.conf of carbon: Graphite points whose path matches one of its regular expressions are dropped and counted. It is read again when it changes. Empty: none are."`
	Whitelist string `name:"graphite.whitelist" default:"" placeholder:"FILE" help:"The file whitelist.conf of carbon: if it has an expression, Graphite points whose path matches none are dropped and counted. It is read again when it changes. Empty: none are."`
	Rewrites  string `name:"graphite.rewrite-rules" default:"" placeholder:"FILE" help:"The file rewrite-rules.conf of carbon: replaces parts of the paths of Graphite points. It is read again when it changes. Empty: no rules."`

	Aggregations string `name:"graphite.aggregation-rules" default:"" placeholder:"FILE" help:"The file aggregation-rules.conf of carbon: Graphite points become points of aggregates, too. It is read again when it changes. Empty: no aggregates."`
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
	watcher  *filewatch.Watcher
	now      atomic.Pointer[Rules]
	changed  func(*Rules)
}

// Open reads the files. An error has the file and the line. The function changed, if not nil, is called
// with the rules that are in force from then on: the first time before Open returns.
func Open(s Settings, changed func(*Rules)) (*Files, error) {
	f := &Files{settings: s, watcher: filewatch.New(s.Blacklist, s.Whitelist, s.Rewrites, s.Aggregations), changed: changed}
	return f, f.Load()
}

// Load reads the files again.
func (f *Files) Load() error {
	r := new(Rules)
	for _, file := range []struct {
		path  string
		parse func(path string, text []byte) error
	}{
		{f.settings.Blacklist, func(path string, text []byte) (err error) { r.Blacklist, err = ParseList(path, text); return }},
		{f.settings.Whitelist, func(path string, text []byte) (err error) { r.Whitelist, err = ParseList(path, text); return }},
		{f.settings.Rewrites, func(path string, text []byte) (err error) { r.Rewriting, err = ParseRewriting(path, text); return }},
		{f.settings.Aggregations, func(path string, text []byte) (err error) {
			r.Aggregations, err = ParseAggregations(path, text)
			return
		}},
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
		f.changed(r)
	}
	return nil
}

// Rules returns what is in force.
func (f *Files) Rules() *Rules { return f.now.Load() }

// Watch reads the files again when they change, until the context is done. Files with errors are logged,
// and change nothing.
func (f *Files) Watch(ctx context.Context, log *slog.Logger) {
	carbonconf.Watch(ctx, f.watcher, log, f.Load)
}
