package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
	"github.com/shaledb/shale/internal/store/retention"
)

// InspectBucket is the part of a bucket that an inspection needs.
type InspectBucket interface {
	catalog.Reader
	// GetRange returns n bytes of an object from off.
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
}

// InspectOptions configure an inspection.
type InspectOptions struct {
	// Check reads and verifies every byte of every live block, and compares the block with its record.
	Check bool
	// Memory is that of a server (package catalog), or nil.
	Memory catalog.Reader
}

// Inspection is what an inspection has found.
type Inspection struct {
	// Wrong counts problems.
	Wrong int

	survey  *catalog.Survey
	damaged map[string]error // live blocks of the right size whose bytes are corrupt
	seeds   map[model.KeySeed]bool
}

// Repairs proposes repairs for what the inspection has found. withheld counts those that need to know what
// servers remember, if the inspection had no memory. forgotten says that no server remembers anything.
func (i *Inspection) Repairs(ctx context.Context, b bucket.Bucket, now time.Time, forgotten bool) (steps []repair.Step, withheld int) {
	r := catalog.Repairer{
		Bucket: b, Now: now.UnixNano(), Damaged: i.damaged, Seeds: slices.Collect(maps.Keys(i.seeds)), Forgotten: forgotten,
		Check: func(ctx context.Context, block *catalog.Block) error { return i.checkBlock(ctx, b, block) },
		Describe: func(ctx context.Context, id string, size int64) (catalog.Block, error) {
			return Describe(ctx, b, id, size)
		},
	}
	return r.Propose(ctx, i.survey)
}

// Inspect prints the content of a bucket: commit records, blocks and whether they are live, deletions,
// garbage and problems. It does not stop at damage. The error is that of the listing or of out.
func Inspect(ctx context.Context, out io.Writer, b InspectBucket, o InspectOptions) (*Inspection, error) {
	s, err := catalog.ReadSurvey(ctx, b, o.Memory)
	if err != nil {
		return nil, err
	}
	found := &Inspection{survey: s, damaged: map[string]error{}, seeds: map[model.KeySeed]bool{}}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if s.SeedKnown {
		fmt.Fprintf(w, "seed %016x\n\n", uint64(s.Seed))
	} else {
		fmt.Fprint(w, "seed unknown\n\n")
	}
	fmt.Fprintln(w, "RECORD\tCOMMITTED\tBLOCKS\tREPLACES\tBYTES")
	for _, r := range s.Records {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\n", r.ID, instant(r.Committed), r.Blocks, r.Replaces, r.Bytes)
	}
	problems := s.Problems
	fmt.Fprintln(w, "\nBLOCK\tSTATE\tLEVEL\tORDER\tGENERATION\tSIZE\tSERIES\tSAMPLES\tLINES\tTIMES\tTENANTS\tSOURCES")
	var live, garbage int64
	for i := range s.Blocks {
		sb := &s.Blocks[i]
		state := "counts"
		if sb.HiddenBy != "" {
			state = "replaced by " + sb.HiddenBy
			garbage += max(0, sb.ObjectBytes)
		} else {
			live += sb.Bytes
		}
		if o.Check && sb.HiddenBy == "" && sb.ObjectBytes == sb.Bytes {
			state += ", in order"
			if err := found.checkBlock(ctx, b, &sb.Block); err != nil {
				state = "counts, damaged"
				problems = append(problems, fmt.Errorf("block %s: %w", sb.ID, err))
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", sb.ID, state, formOf(&sb.Block), orders(&sb.Block),
			sb.Generation, sb.Bytes, sb.Series, sb.Samples, lines(&sb.Block), timesOf(sb.Range), tenants(&sb.Block), sources(sb.Sources))
	}
	if len(s.Journals) > 0 {
		fmt.Fprintln(w, "\nJOURNAL\tCOVERED\tAPPENDED\tBY")
	}
	for _, j := range s.Journals {
		closed := ""
		if j.Closed {
			closed = ", closed"
		}
		fmt.Fprintf(w, "%s/%d\tup to %d%s\t%s\t%s\n", cmp.Or(j.Node, "?"), j.Epoch, j.To, closed, appended(j.Appended), j.Ship)
		for _, k := range j.Skipped {
			fmt.Fprintf(w, "%s/%d\tskipped %d to %d\t\t%s\n", cmp.Or(j.Node, "?"), j.Epoch, k.From, k.To, k.Why)
		}
	}
	fmt.Fprintln(w)
	for _, d := range s.Deletions {
		end := ""
		if s.Cancelled[d.Generation] {
			end = ", cancelled"
		}
		fmt.Fprintf(w, "deletion %d: %s of tenant %s %s, committed %s%s\n", d.Generation, d.Query(), d.Tenant, timesOf(d.Range), instant(d.Committed), end)
	}
	for _, list := range []struct {
		objects []catalog.SurveyObject
		what    string
	}{{s.Orphans, "uploaded and not committed"}, {s.Strays, "a block without a commit record"}, {s.Aside, "set aside by a repair"}, {s.Strangers, "not an object of Shale"}} {
		for _, o := range list.objects {
			fmt.Fprintf(w, "%s: %d bytes, %s\n", o.Name, o.Bytes, list.what)
		}
	}
	for _, o := range s.Orphans {
		garbage += o.Bytes
	}
	for _, p := range problems {
		fmt.Fprintf(w, "WRONG: %v\n", p)
	}
	found.Wrong = len(problems)
	fmt.Fprintf(w, "%d %s, %d %s; %d bytes count, %d bytes are garbage; %d %s wrong\n",
		len(s.Records), english.PluralWord(len(s.Records), "record", ""), len(s.Blocks), english.PluralWord(len(s.Blocks), "block", ""),
		live, garbage, len(problems), english.PluralWord(len(problems), "thing", ""))
	return found, w.Flush()
}

// appended formats a time before which all batches are covered.
func appended(at int64) string {
	if at == 0 {
		return "-"
	}
	return "before " + instant(at)
}

// lines formats the line count of a block, if its record has one.
func lines(b *catalog.Block) string {
	if b.Signal == model.Logs && b.Lines == 0 {
		return "-"
	}
	return fmt.Sprint(b.Lines)
}

// checkBlock reads a block and compares it with its record. Only a block whose bytes are corrupt is noted as
// damaged: if intact bytes do not match the record or the seed, one of these may be wrong.
func (i *Inspection) checkBlock(ctx context.Context, b InspectBucket, block *catalog.Block) error {
	name := catalog.ObjectName(block.ID)
	read := func(ctx context.Context, off, n int64) ([]byte, error) { return b.GetRange(ctx, name, off, n) }
	r, err := part.OpenWith(ctx, &rangePages{read}, read, block.Bytes)
	if err == nil {
		err = part.Check(ctx, r)
	}
	if errors.Is(err, model.ErrCorrupt) {
		i.damaged[block.ID] = err
	}
	if err != nil {
		return err
	}
	m := r.Meta()
	i.seeds[m.Seed] = true
	var named []catalog.Source
	for _, source := range m.Sources {
		named = append(named, catalog.Source(source))
	}
	switch {
	case i.survey.SeedKnown && m.Seed != i.survey.Seed:
		err = fmt.Errorf("key seed %016x does not match the bucket's %016x", uint64(m.Seed), uint64(i.survey.Seed))
	case !m.Labels:
		err = errors.New("the block has no labels")
	case m.Signal != block.Signal || m.Series != block.Series || m.Samples != block.Samples || !sameLines(m, block) || m.Range != block.Range || len(m.Tenants) != block.TenantCount:
		err = fmt.Errorf("the record does not match the block: %d series, %d %s, %d %s of %d bytes, %d %s, times %s", m.Series,
			m.Samples, english.PluralWord(int(m.Samples), "sample", ""), m.Text, english.PluralWord(int(m.Text), "line", ""), m.TextBytes,
			len(m.Tenants), english.PluralWord(len(m.Tenants), "tenant", ""), timesOf(m.Range))
	case !slices.Equal(named, block.Sources):
		err = fmt.Errorf("the block is from %s, its record says %s", sources(named), sources(block.Sources))
	default:
		err = compareSeries(ctx, r, block)
	}
	if err != nil && !errors.Is(err, model.ErrTransient) && !errors.Is(err, model.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", model.ErrCorrupt, err)
	}
	return err
}

// compareSeries compares tenants and keys with the record, by which queries and merges rule blocks out.
func compareSeries(ctx context.Context, r *part.Reader, block *catalog.Block) error {
	for _, t := range r.Meta().Tenants {
		if !block.HasTenant(t.Name) {
			return fmt.Errorf("the block has the tenant %q, which its record does not list", t.Name)
		}
	}
	var first, last model.Key
	begun := false
	for s, err := range part.All(ctx, r.Stream()) {
		if err != nil {
			return err
		}
		if last = s.Key; !begun {
			first, begun = last, true
		}
		if last.Less(block.KeyMin) || block.KeyMax.Less(last) {
			return fmt.Errorf("the block has the key %s, its record says %s to %s", last, block.KeyMin, block.KeyMax)
		}
	}
	if first.Less(block.FirstKey) || block.LastKey.Less(last) {
		return fmt.Errorf("the series go from %s to %s, the record says %s to %s", first, last, block.FirstKey, block.LastKey)
	}
	return nil
}

// rangePages reads and decodes pages without a cache.
type rangePages struct{ read part.ReadRange }

func (p *rangePages) Page(ctx context.Context, a part.Addr) ([]byte, error) {
	stored, err := p.read(ctx, a.Off, int64(a.Len))
	if err != nil {
		return nil, err
	}
	return part.DecodePage(stored)
}

// formOf names the level of a block, or of rollups the length of their slots.
func formOf(b *catalog.Block) string {
	if b.Resolution > 0 {
		return "rollups " + retention.Text(time.Duration(b.Resolution))
	}
	return levelName(b.Level)
}

func levelName(l catalog.Level) string {
	switch l {
	case catalog.Shipped:
		return "shipped"
	case catalog.Joined:
		return "joined"
	case catalog.Settled:
		return "settled"
	}
	return fmt.Sprint(l)
}

func orders(b *catalog.Block) string {
	if b.OrderLo == b.OrderHi {
		return fmt.Sprint(b.OrderHi)
	}
	return fmt.Sprintf("%d to %d", b.OrderLo, b.OrderHi)
}

func instant(t int64) string {
	if t == math.MinInt64 || t == math.MaxInt64 {
		return "ever"
	}
	return time.Unix(0, t).UTC().Format("2006-01-02T15:04:05.999Z")
}

func timesOf(r model.TimeRange) string {
	if r.Min > r.Max {
		return "no rows"
	}
	return instant(r.Min) + " to " + instant(r.Max)
}

func tenants(b *catalog.Block) string {
	if len(b.Tenants) > 3 || b.Tenants == nil {
		return fmt.Sprintf("%d from %s to %s", b.TenantCount, b.FirstTenant, b.LastTenant)
	}
	return strings.Join(b.Tenants, ", ")
}

func sources(all []catalog.Source) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, fmt.Sprintf("%s/%d: %d to %d", cmp.Or(s.Node, "?"), s.Epoch, s.SeqLo, s.SeqHi))
	}
	return strings.Join(parts, "; ")
}
