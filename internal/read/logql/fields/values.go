package fields

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Values collects the values of one field. It is used by one goroutine.
type Values struct {
	parser *parser
	quota  *model.Quota
	name   string
	limit  int
	values map[string]struct{}
}

// NewValues returns a collection of at most limit values of a field. Its memory is charged to the quota and
// stays charged.
func NewValues(ctx context.Context, quota *model.Quota, name string, limit int) (*Values, error) {
	p, err := newParser(ctx)
	return &Values{parser: p, quota: quota, name: name, limit: limit, values: make(map[string]struct{})}, err
}

// Add adds a line.
func (v *Values) Add(l *Line) error {
	if len(v.values) >= v.limit {
		return nil
	}
	if err := v.add(string(l.Metadata.Get(v.name))); err != nil {
		return err
	}
	extracted, _, err := v.parser.parse(l)
	if err != nil || !isField([]byte(v.name)) {
		return err
	}
	if err := v.add(forQuery(string(l.Parsed.Get(v.name)))); err != nil {
		return err
	}
	return v.add(forQuery(string(extracted.Get(v.name))))
}

// add adds a value. The empty one is left out, as in Loki.
func (v *Values) add(value string) error {
	if _, known := v.values[value]; known || value == "" || len(v.values) >= v.limit {
		return nil
	}
	if err := v.quota.TakeBytes(valueBytes + int64(len(value))); err != nil {
		return err
	}
	v.values[value] = struct{}{}
	return nil
}

// Sorted returns the values, sorted.
func (v *Values) Sorted() []string {
	out := make([]string, 0, len(v.values))
	for value := range v.values {
		out = append(out, value)
	}
	slices.Sort(out)
	return out
}
