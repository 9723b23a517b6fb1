package push

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
	_ "unsafe" // for linkname: the functions are not exported

	"github.com/go-kit/log"
	"github.com/grafana/dskit/flagext"
	"github.com/grafana/loki/v3/pkg/distributor"
	"github.com/grafana/loki/v3/pkg/loghttp/push"
	"github.com/grafana/loki/v3/pkg/logproto"
	"github.com/grafana/loki/v3/pkg/logql/syntax"
	"github.com/grafana/loki/v3/pkg/validation"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/labels"
)

// rules has the layout of distributor.validationContext.
type rules struct {
	rejectOldSample       bool
	rejectOldSampleMaxAge int64
	creationGracePeriod   int64

	maxLineSize                   int
	maxLineSizeTruncate           bool
	maxLineSizeTruncateIdentifier string

	maxLabelNamesPerSeries int
	maxLabelNameLength     int
	maxLabelValueLength    int

	incrementDuplicateTimestamps bool
	discoverServiceName          []string
	discoverGenericFields        map[string][]string
	discoverLogLevels            bool
	logLevelFields               []string
	logLevelFromJSONMaxDepth     int

	allowStructuredMetadata    bool
	maxStructuredMetadataSize  int
	maxStructuredMetadataCount int

	blockIngestionUntil      time.Time
	blockIngestionStatusCode int
	enforcedLabels           []string

	userID string
}

//go:linkname rulesAt github.com/grafana/loki/v3/pkg/distributor.Validator.getValidationContextForTime
func rulesAt(v distributor.Validator, now time.Time, userID string) rules

//go:linkname newFieldDetector github.com/grafana/loki/v3/pkg/distributor.newFieldDetector
func newFieldDetector(r rules) *distributor.FieldDetector

//go:linkname extractLogLevel github.com/grafana/loki/v3/pkg/distributor.(*FieldDetector).extractLogLevel
func extractLogLevel(d *distributor.FieldDetector, stream, metadata labels.Labels, e logproto.Entry) (logproto.LabelAdapter, bool)

//go:linkname validateEntry github.com/grafana/loki/v3/pkg/distributor.Validator.ValidateEntry
func validateEntry(v distributor.Validator, ctx context.Context, r rules, stream labels.Labels, e logproto.Entry, retention, policy, format string) error

//go:linkname validateLabels github.com/grafana/loki/v3/pkg/distributor.Validator.ValidateLabels
func validateLabels(v distributor.Validator, r rules, stream labels.Labels, s logproto.Stream, retention, policy, format string) error

// Line is a line as it would be stored; Labels and Metadata are name, value, ... in order.
type Line struct {
	Labels, Metadata []string
	Time             int64
	Line             []byte
}

// Answer is Loki's response to a request.
type Answer struct {
	Name    string
	Refused string
	Errors  []string
	Lines   []Line
}

// Loki is a distributor without ingesters.
type Loki struct {
	validator *distributor.Validator
	limits    *validation.Overrides
	rules     rules
	levels    *distributor.FieldDetector
}

// New returns a Loki with the default limits, for which the time is now.
func New(now time.Time) (*Loki, error) {
	var defaults validation.Limits
	flagext.DefaultValues(&defaults)
	var otlp push.GlobalOTLPConfig
	flagext.DefaultValues(&otlp)
	defaults.SetGlobalOTLPConfig(otlp)
	limits, err := validation.NewOverrides(defaults, nil)
	if err != nil {
		return nil, err
	}
	v, err := distributor.NewValidator(limits, nil)
	if err != nil {
		return nil, err
	}
	r := rulesAt(*v, now.UTC(), "t")
	return &Loki{v, limits, r, newFieldDetector(r)}, nil
}

// resolver resolves every stream to the default policy.
type resolver struct{}

func (resolver) RetentionPeriodFor(labels.Labels) time.Duration  { return 0 }
func (resolver) RetentionHoursFor(labels.Labels) string          { return "" }
func (resolver) PolicyFor(context.Context, labels.Labels) string { return "" }

// Ask passes a request to Loki and returns the response.
func (l *Loki) Ask(name string, r *http.Request, otlp bool) Answer {
	a := Answer{Name: name}
	parse := push.ParseLokiRequest
	if otlp {
		parse = push.ParseOTLPRequest
	}
	req, _, err := parse("t", r, l.limits, nil, 100<<20, 100<<20, nil, resolver{}, log.NewNopLogger())
	if err != nil {
		a.Refused = err.Error()
		return a
	}
	for _, s := range req.Streams {
		if len(s.Entries) > 0 {
			l.stream(&a, s)
		}
	}
	slices.Sort(a.Errors)
	return a
}

// stream processes a stream as the distributor does before it forwards it.
func (l *Loki) stream(a *Answer, s logproto.Stream) {
	ls, err := syntax.ParseLabels(s.Labels)
	if err != nil {
		a.Errors = append(a.Errors, fmt.Sprintf("error parsing labels '%s' with error: %s", s.Labels, err))
		return
	}
	if err := validateLabels(*l.validator, l.rules, ls, s, "", "", "loki"); err != nil {
		a.Errors = append(a.Errors, err.Error())
		return
	}
	for _, e := range s.Entries {
		e.Timestamp = e.Timestamp.UTC() // Loki's texts have the zone of its machine
		if err := validateEntry(*l.validator, context.Background(), l.rules, ls, e, "", "", "loki"); err != nil {
			a.Errors = append(a.Errors, err.Error())
			continue
		}
		metadata, err := normalised(e)
		if err != nil {
			a.Errors = append(a.Errors, err.Error())
			continue
		}
		e.StructuredMetadata = logproto.FromLabelsToLabelAdapters(metadata)
		if level, ok := extractLogLevel(l.levels, ls, metadata, e); ok {
			e.StructuredMetadata = append(e.StructuredMetadata, level)
		}
		a.Lines = append(a.Lines, Line{pairs(ls), sorted(e.StructuredMetadata), e.Timestamp.UnixNano(), []byte(e.Line)})
	}
}

// normalised is the part of the distributor's push that normalises names and values. It has no function of
// its own in Loki.
func normalised(e logproto.Entry) (labels.Labels, error) {
	l := logproto.FromLabelAdaptersToLabels(e.StructuredMetadata)
	b := labels.NewBuilder(l)
	var namer otlptranslator.LabelNamer
	for _, m := range e.StructuredMetadata {
		name, err := namer.Build(m.Name)
		if err != nil {
			return l, err
		}
		if name != m.Name {
			b.Del(m.Name)
			b.Set(name, m.Value)
		}
		if strings.ContainsRune(m.Value, utf8.RuneError) {
			b.Set(name, strings.Map(func(r rune) rune {
				if r == utf8.RuneError {
					return ' '
				}
				return r
			}, m.Value))
		}
	}
	return b.Labels(), nil
}

func pairs(l labels.Labels) (out []string) {
	l.Range(func(l labels.Label) { out = append(out, l.Name, l.Value) })
	return out
}

func sorted(m []logproto.LabelAdapter) (out []string) {
	m = slices.Clone(m)
	slices.SortStableFunc(m, func(a, b logproto.LabelAdapter) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range m {
		out = append(out, l.Name, l.Value)
	}
	return out
}
