package fields

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
)

// Field is a field of the lines of a sample.
type Field struct {
	Name string
	// Type is that of the value that was added last, as in Loki.
	Type        Type
	Cardinality int      // of its values in the sample, exact
	Parsers     []string // that extract it; none: it is structured metadata
	JSONPath    []string // the keys that lead to it in the JSON line that was added last; none: it has no path
}

// The memory that a field and a value take, about.
const (
	fieldBytes = 256
	valueBytes = 32
)

// Detector collects fields. It is used by one goroutine.
type Detector struct {
	parser *parser
	quota  *model.Quota
	limit  int
	seed   maphash.Seed
	fields map[string]*field
	lines  []Line // those of JSON
}

type field struct {
	Field
	values map[uint64]struct{} // their hashes
	json   int                 // the index of the last JSON line with the field, plus 1
}

// NewDetector returns a Detector of at most limit fields. Its memory is charged to the quota and stays
// charged.
func NewDetector(ctx context.Context, quota *model.Quota, limit int) (*Detector, error) {
	p, err := newParser(ctx)
	return &Detector{parser: p, quota: quota, limit: limit, seed: maphash.MakeSeed(), fields: make(map[string]*field)}, err
}

// Add adds a line, whose bytes must stay as they are.
func (d *Detector) Add(l *Line) error {
	for n, v, rest, ok := l.Metadata.Next(); ok; n, v, rest, ok = rest.Next() {
		if _, err := d.add(n, v, ""); err != nil {
			return err
		}
	}
	extracted, parser, err := d.parser.parse(l)
	if err != nil {
		return err
	}
	if parser == "json" {
		d.lines = append(d.lines, *l)
	}
	for _, labels := range []model.Labels{l.Parsed, extracted} {
		for n, v, rest, ok := labels.Next(); ok; n, v, rest, ok = rest.Next() {
			if !isField(n) {
				continue
			}
			f, err := d.add(n, v, parser)
			if err != nil {
				return err
			}
			if f != nil && parser == "json" {
				f.json = len(d.lines)
			}
		}
	}
	return nil
}

// add adds a value. It returns nil if there are too many fields.
func (d *Detector) add(name, value []byte, parser string) (*field, error) {
	f := d.fields[string(name)]
	if f == nil {
		if len(d.fields) >= d.limit {
			return nil, nil
		}
		if err := d.quota.TakeBytes(fieldBytes + int64(len(name))); err != nil {
			return nil, err
		}
		f = &field{Field: Field{Name: string(name)}, values: make(map[uint64]struct{})}
		d.fields[f.Name] = f
	}
	if parser != "" && !slices.Contains(f.Parsers, parser) {
		f.Parsers = append(f.Parsers, parser)
	}
	f.Type = TypeOf(string(value))
	sum := maphash.Bytes(d.seed, value)
	if _, known := f.values[sum]; !known {
		if err := d.quota.TakeBytes(valueBytes); err != nil {
			return nil, err
		}
		f.values[sum] = struct{}{}
	}
	return f, nil
}

// Fields returns the fields, sorted by name.
func (d *Detector) Fields() []Field {
	byLine := make(map[int][]*field)
	for _, f := range d.fields {
		if f.json > 0 {
			byLine[f.json] = append(byLine[f.json], f)
		}
	}
	for n := range byLine {
		l := &d.lines[n-1]
		base := baseOf(l)
		line.JSONPaths(l.Text, func(name string) bool { return base.Get(name) != nil }, func(name string, path []string) {
			if f := d.fields[name]; f != nil && f.json == n && f.JSONPath == nil {
				f.JSONPath = path
			}
		})
	}
	out := make([]Field, 0, len(d.fields))
	for _, f := range d.fields {
		f.Cardinality = len(f.values)
		out = append(out, f.Field)
	}
	slices.SortFunc(out, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return out
}
