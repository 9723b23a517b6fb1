package carbonexplain

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/write/graphite/route"
	"github.com/shaledb/shale/internal/write/graphite/rules"
)

// Setting is what a setting of carbon.conf means.
type Setting struct {
	Section string  `json:"section"`
	Name    string  `json:"name"`
	Value   string  `json:"value"`
	Line    int     `json:"line"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
}

// File is what a file next to carbon.conf means.
type File struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Error   string  `json:"error,omitempty"`
}

// Report is what the files of a fleet mean.
type Report struct {
	Settings []Setting `json:"settings"`
	Files    []File    `json:"files"`
}

// Explain explains a carbon.conf and the files in its folder. An error in carbon.conf has the file and the
// line; those in other files are a part of the report.
func Explain(path string) (*Report, error) {
	text, err := carbonconf.ReadFile(path)
	if err != nil {
		return nil, err
	}
	conf, err := carbonconf.Parse(path, text)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	all := knobs()
	for _, s := range conf.Sections {
		for _, k := range s.Keys {
			r.Settings = append(r.Settings, explainKey(all, s.Name, k))
		}
	}
	for _, f := range files(conf) {
		at := filepath.Join(filepath.Dir(path), f.Name)
		text, err := carbonconf.ReadFile(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = f.parse(at, text)
		}
		if err != nil {
			f.Error = err.Error()
		}
		r.Files = append(r.Files, f.File)
	}
	return r, nil
}

func explainKey(all map[string]knob, section string, k carbonconf.Key) Setting {
	s := Setting{Section: section, Name: strings.ToUpper(k.Name), Value: k.Value, Line: k.Line, Verdict: Unknown}
	daemon, _, _ := strings.Cut(section, ":")
	known, ok := all[s.Name]
	switch {
	case !slices.Contains([]string{"cache", "relay", "aggregator"}, daemon):
		s.Text = "carbon has no section of this name"
	case !ok:
		s.Text = "carbon 1.1.10 has no setting of this name"
	default:
		s.Verdict, s.Text = known.verdict, known.text
	}
	return s
}

// parser is a file that may lie next to carbon.conf, and what reads it.
type parser struct {
	File
	parse func(path string, text []byte) error
}

func files(carbon *carbonconf.File) []parser {
	ini := func(read func(*carbonconf.File) error) func(string, []byte) error {
		return func(path string, text []byte) error {
			f, err := carbonconf.Parse(path, text)
			if err == nil {
				err = read(f)
			}
			return err
		}
	}
	return []parser{
		{File{Name: "storage-schemas.conf", Verdict: Kept, Text: "graphite.storage-schemas=FILE; it applies when points are read"},
			ini(func(f *carbonconf.File) error { _, err := policy.Parse(f, nil); return err })},
		{File{Name: "storage-aggregation.conf", Verdict: Kept, Text: "graphite.storage-aggregation=FILE; it applies when points are read"},
			ini(func(f *carbonconf.File) error { _, err := policy.Parse(nil, f); return err })},
		{File{Name: "blacklist.conf", Verdict: Kept, Text: "graphite.blacklist=FILE"},
			func(path string, text []byte) error { _, err := rules.ParseList(path, text); return err }},
		{File{Name: "whitelist.conf", Verdict: Kept, Text: "graphite.whitelist=FILE"},
			func(path string, text []byte) error { _, err := rules.ParseList(path, text); return err }},
		{File{Name: "rewrite-rules.conf", Verdict: Kept, Text: "graphite.rewrite-rules=FILE"},
			func(path string, text []byte) error { _, err := rules.ParseRewriting(path, text); return err }},
		{File{Name: "aggregation-rules.conf", Verdict: Kept, Text: "graphite.aggregation-rules=FILE"},
			func(path string, text []byte) error { _, err := rules.ParseAggregations(path, text); return err }},
		{File{Name: "relay-rules.conf", Verdict: Kept, Text: "graphite.relay=FILE reads it next to this carbon.conf, where RELAY_METHOD is rules"},
			ini(func(f *carbonconf.File) error { return checkRelay(carbon, f) })},
	}
}

// checkRelay checks relay-rules.conf with the section [relay] of carbon.conf or, if there are several
// relays, with the section of each, such as [relay:a].
func checkRelay(carbon, relay *carbonconf.File) error {
	instances := []string{}
	for _, s := range carbon.Sections {
		if name, ok := strings.CutPrefix(s.Name, "relay:"); ok {
			instances = append(instances, name)
		} else if s.Name == "relay" && len(instances) == 0 {
			instances = append(instances, "")
		}
	}
	if len(instances) > 1 && instances[0] == "" { // what all of them share
		instances = instances[1:]
	}
	for _, name := range instances {
		conf, err := route.ParseConf(carbon, name)
		if err == nil && conf.RelayRules != "" {
			_, err = conf.Router(relay, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lines returns the report as text: a line for each setting and file.
func (r *Report) lines() string {
	var b strings.Builder
	section, width := "", 0
	for _, s := range r.Settings {
		width = max(width, len(s.Name))
	}
	row := func(verdict Verdict, name, text string) {
		b.WriteString(string(verdict) + strings.Repeat(" ", max(1, 12-len(verdict))))
		b.WriteString(name + strings.Repeat(" ", max(1, width+2-len(name))) + text + "\n")
	}
	for _, s := range r.Settings {
		if s.Section != section {
			section = s.Section
			b.WriteString("[" + section + "]\n")
		}
		row(s.Verdict, s.Name, carbonconf.Short(strings.ReplaceAll(s.Value, "\n", " "))+" (line "+strconv.Itoa(s.Line)+"): "+s.Text)
	}
	if len(r.Files) > 0 {
		b.WriteString("files\n")
	}
	for _, f := range r.Files {
		row(f.Verdict, f.Name, f.Text)
		if f.Error != "" {
			row("", "", f.Error)
		}
	}
	return b.String()
}
