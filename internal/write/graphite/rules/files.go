package rules

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/filewatch"
	"github.com/shaledb/shale/internal/write/graphite/route"
)

// Settings are the settings of this room.
type Settings struct {
	Blacklist string `name:"graphite.blacklist" default:"" placeholder:"FILE" help:"The file blacklist.conf of carbon: Graphite points whose path matches one of its regular expressions are dropped and counted. It is read again when it changes. Empty: none are."`
	Whitelist string `name:"graphite.whitelist" default:"" placeholder:"FILE" help:"The file whitelist.conf of carbon: if it has an expression, Graphite points whose path matches none are dropped and counted. It is read again when it changes. Empty: none are."`
	Rewrites  string `name:"graphite.rewrite-rules" default:"" placeholder:"FILE" help:"The file rewrite-rules.conf of carbon: replaces parts of the paths of Graphite points. It is read again when it changes. Empty: no rules."`

	Aggregations string `name:"graphite.aggregation-rules" default:"" placeholder:"FILE" help:"The file aggregation-rules.conf of carbon: Graphite points become points of aggregates, too. It is read again when it changes. Empty: no aggregates."`

	Relay string `name:"graphite.relay" default:"" placeholder:"FILE" help:"The file carbon.conf of a carbon-relay: Graphite points are also sent to the DESTINATIONS of its section [relay], by its RELAY_METHOD. It is read again when it changes, and so are RELAY_RULES and AGGREGATION_RULES, which lie in its folder. Empty: points are not relayed."`

	RelayInstance string `name:"graphite.relay-instance" default:"" placeholder:"NAME" help:"Which relay of the file graphite.relay this is, as --instance of carbon-relay: settings in its section [relay:NAME] override those in [relay]. Empty: [relay] alone counts."`
}

// Any reports whether there is a file.
func (s *Settings) Any() bool { return *s != Settings{} }

// Rules are what the files say. They never change.
type Rules struct {
	Blacklist, Whitelist List
	Rewriting            Rewriting
	Aggregations         Aggregations
	// Router says where points are relayed to; nil: nowhere.
	Router *route.Router
}

// Files are the rules of the files, which may change. Several goroutines may use them.
type Files struct {
	settings Settings
	watcher  *filewatch.Watcher
	now      atomic.Pointer[Rules]
	changed  func(*Rules) error
}

// Open reads the files. An error has the file and the line. The function changed, if not nil, is called
// with the rules that are to be in force from then on, unless it returns an error: the first time before Open
// returns.
func Open(s Settings, changed func(*Rules) error) (*Files, error) {
	f := &Files{settings: s, changed: changed}
	f.watcher = filewatch.New(f.paths(nil)...)
	return f, f.Load()
}

// paths returns the files to watch. The relay has some of its own.
func (f *Files) paths(relay *route.Conf) []string {
	s := &f.settings
	all := []string{s.Blacklist, s.Whitelist, s.Rewrites, s.Aggregations, s.Relay}
	if relay != nil {
		all = append(all, f.besideRelay(relay.RelayRules), f.besideRelay(relay.AggregationRules), f.besideRelay(relay.CA))
	}
	return slices.DeleteFunc(all, func(path string) bool { return path == "" })
}

// besideRelay returns the path of a file that carbon.conf names, which lies in its folder.
func (f *Files) besideRelay(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.settings.Relay), name)
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
	if err := f.loadRelay(r); err != nil {
		return err
	}
	if f.changed != nil {
		if err := f.changed(r); err != nil {
			return err
		}
	}
	f.now.Store(r)
	return nil
}

// loadRelay reads the files of the relay. Those that carbon.conf names are watched from now on, even if they
// have an error.
func (f *Files) loadRelay(r *Rules) error {
	if f.settings.Relay == "" {
		return nil
	}
	file, err := readSections(f.settings.Relay)
	if err != nil {
		return err
	}
	conf, err := route.ParseConf(file, f.settings.RelayInstance)
	if err != nil {
		return err
	}
	conf.CA = f.besideRelay(conf.CA)
	if paths := f.paths(conf); !slices.Equal(paths, f.watcher.Paths()) {
		f.watcher.Replace(paths...)
	}
	var relay *carbonconf.File
	if conf.RelayRules != "" {
		if relay, err = readSections(f.besideRelay(conf.RelayRules)); err != nil {
			return err
		}
	}
	var aggregations Aggregations
	if conf.AggregationRules != "" {
		path := f.besideRelay(conf.AggregationRules)
		text, err := carbonconf.ReadFile(path)
		if err != nil {
			return err
		}
		if aggregations, err = ParseAggregations(path, text); err != nil {
			return err
		}
	}
	r.Router, err = conf.Router(relay, aggregations.Outputs)
	return err
}

func readSections(path string) (*carbonconf.File, error) {
	text, err := carbonconf.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return carbonconf.Parse(path, text)
}

// Rules returns what is in force.
func (f *Files) Rules() *Rules { return f.now.Load() }

// Watch reads the files again when they change, until the context is done. Files with errors are logged,
// and change nothing.
func (f *Files) Watch(ctx context.Context, log *slog.Logger) {
	carbonconf.Watch(ctx, f.watcher, log, f.Load)
}
