package loki

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// categorizeLabels asks for the labels of a line apart from those of its stream, grouped by their origin.
const categorizeLabels = "categorize-labels"

// encodingFlags reads the header X-Loki-Response-Encoding-Flags. Loki repeats all flags in its response.
func encodingFlags(h http.Header) []string {
	value := h.Get("X-Loki-Response-Encoding-Flags")
	if value == "" {
		return nil
	}
	flags := strings.Split(value, ",")
	slices.Sort(flags)
	return slices.Compact(flags)
}

func categorizes(flags []string) bool { return slices.Contains(flags, categorizeLabels) }

// base64Lines asks for the exact bytes of lines that are not valid UTF-8, which JSON cannot hold. Loki has no
// such flag.
const base64Lines = "base64-lines"

// entryForm says which members the third item of an entry may have.
type entryForm struct{ categorize, base64 bool }

func entryFormOf(flags []string) entryForm {
	return entryForm{categorizes(flags), slices.Contains(flags, base64Lines)}
}

// writeLabels writes labels as a JSON object.
func writeLabels(b *api.Body, l model.Labels) {
	separator := "{"
	for {
		name, value, rest, ok := l.Next()
		if !ok {
			break
		}
		b.Raw(separator)
		separator = ","
		b.StrBytes(name)
		b.Raw(":")
		b.StrBytes(value)
		l = rest
	}
	if separator == "{" {
		b.Raw("{")
	}
	b.Raw("}")
}

// writeLines writes the result of a query for lines.
func writeLines(b *api.Body, streams []logql.Stream, flags []string, f *figures) {
	b.Raw(`{"status":"success","data":{"resultType":"streams"`)
	writeFlags(b, flags)
	b.Raw(`,"result":[`)
	form := entryFormOf(flags)
	for i := range streams {
		s := &streams[i]
		if i > 0 {
			b.Raw(",")
		}
		beginStream(b, s.Labels)
		for j := range s.Entries {
			if j > 0 {
				b.Raw(",")
			}
			writeEntry(b, &s.Entries[j], form)
			b.Spill()
		}
		b.Raw("]}")
	}
	b.Raw(`],"stats":`)
	f.write(b)
	b.Raw("}")
	if warnings := b.Warnings(); len(warnings) > 0 {
		b.Raw(`,"warnings":`)
		b.Texts(warnings)
	}
	b.Raw("}\n")
}

func writeFlags(b *api.Body, flags []string) {
	separator := `,"encodingFlags":[`
	for _, f := range flags {
		b.Raw(separator)
		separator = ","
		b.Str(f)
	}
	if len(flags) > 0 {
		b.Raw("]")
	}
}

// beginStream writes a stream up to its first entry.
func beginStream(b *api.Body, l model.Labels) {
	b.Raw(`{"stream":`)
	writeLabels(b, l)
	b.Raw(`,"values":[`)
}

// writeEntry writes a line: its time in nanoseconds as a string, its text and, as the form says, an object
// with its own labels and its bytes.
func writeEntry(b *api.Body, e *logql.Entry, form entryForm) {
	b.Raw(`["`)
	b.Buf = strconv.AppendInt(b.Buf, e.Time, 10)
	b.Raw(`",`)
	b.StrBytes(e.Line)
	exact := form.base64 && !utf8.Valid(e.Line)
	if form.categorize || exact {
		separator := ",{"
		if exact {
			b.Raw(separator)
			separator = ","
			b.Raw(`"base64":"`)
			b.Buf = base64.StdEncoding.AppendEncode(b.Buf, e.Line)
			b.Raw(`"`)
		}
		if form.categorize && len(e.Metadata) > 0 {
			b.Raw(separator)
			separator = ","
			b.Raw(`"structuredMetadata":`)
			writeLabels(b, e.Metadata)
		}
		if form.categorize && len(e.Parsed) > 0 {
			b.Raw(separator)
			separator = ","
			b.Raw(`"parsed":`)
			writeLabels(b, e.Parsed)
		}
		if separator == ",{" {
			b.Raw(separator)
		}
		b.Raw("}")
	}
	b.Raw("]")
}

// writeLegacyLines writes the result of a query that came by the old path.
func writeLegacyLines(b *api.Body, streams []logql.Stream, flags []string, f *figures) {
	b.Raw(`{"streams":[`)
	for i := range streams {
		if i > 0 {
			b.Raw(",")
		}
		s := &streams[i]
		beginLegacyStream(b, s.Labels)
		for j := range s.Entries {
			if j > 0 {
				b.Raw(",")
			}
			writeLegacyEntry(b, &s.Entries[j], categorizes(flags))
			b.Spill()
		}
		b.Raw("]}")
	}
	b.Raw(`],"stats":`)
	f.write(b)
	b.Raw("}\n")
}

// beginLegacyStream writes a stream of the old form, whose labels are text, up to its first entry.
func beginLegacyStream(b *api.Body, l model.Labels) {
	b.Raw(`{"labels":`)
	b.Str(l.String()) // as Loki writes them: {a="1", b="2"}
	b.Raw(`,"entries":[`)
}

// writeLegacyEntry writes a line in the old form, which has no structured metadata. If parsed is set, the
// labels that stages made follow.
func writeLegacyEntry(b *api.Body, e *logql.Entry, parsed bool) {
	b.Raw(`{"ts":"`)
	b.Buf = time.Unix(0, e.Time).UTC().AppendFormat(b.Buf, time.RFC3339Nano)
	b.Raw(`","line":`)
	b.StrBytes(e.Line)
	if parsed && len(e.Parsed) > 0 {
		b.Raw(`,"parsed":`)
		writeLabels(b, e.Parsed)
	}
	b.Raw("}")
}
