package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// InspectBucket is what an inspection needs of a bucket.
type InspectBucket interface {
	catalog.Reader
	// GetRange returns n bytes of an object from off.
	GetRange(ctx context.Context, name string, off, n int64) ([]byte, error)
}

// Inspect writes down all that is in a bucket: commit records, blocks with whether they count, deletions, garbage, and
// what is wrong. With check it reads every byte of every block that counts, verifies what can be verified, and compares
// the block with its record. It goes on after damage and returns the number of things that are wrong; the error is that
// of a listing, or of out.
func Inspect(ctx context.Context, out io.Writer, b InspectBucket, check bool) (damaged int, err error) {
	s, err := catalog.Look(ctx, b)
	if err != nil {
		return 0, err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "seed %016x\n\n", uint64(s.Seed))
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
		if check && sb.HiddenBy == "" && sb.ObjectBytes == sb.Bytes {
			state += ", in order"
			if err := checkBlock(ctx, b, s, &sb.Block); err != nil {
				state = "counts, damaged"
				problems = append(problems, fmt.Errorf("block %s: %w", sb.ID, err))
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", sb.ID, state, levelName(sb.Level), orders(&sb.Block),
			sb.Generation, sb.Bytes, sb.Series, sb.Samples, lines(&sb.Block), timesOf(sb.Range), tenants(&sb.Block), sources(sb.Sources))
	}
	fmt.Fprintln(w)
	for _, d := range s.Deletions {
		fmt.Fprintf(w, "deletion %d: %s of tenant %s %s, committed %s\n", d.Generation, matchers(d.Matchers), d.Tenant, timesOf(d.Range), instant(d.Committed))
	}
	for _, o := range s.Orphans {
		fmt.Fprintf(w, "%s: %d bytes that were uploaded and not committed\n", o.Name, o.Bytes)
		garbage += o.Bytes
	}
	for _, o := range s.Strangers {
		fmt.Fprintf(w, "%s: %d bytes that are not Shale's\n", o.Name, o.Bytes)
	}
	for _, p := range problems {
		fmt.Fprintf(w, "WRONG: %v\n", p)
	}
	fmt.Fprintf(w, "%d records, %d blocks; %d bytes count, %d bytes are garbage; %d things are wrong\n",
		len(s.Records), len(s.Blocks), live, garbage, len(problems))
	return len(problems), w.Flush()
}

// lines counts those of a block, as far as its record says.
func lines(b *catalog.Block) string {
	if b.Signal == model.Logs && b.Lines == 0 {
		return "-"
	}
	return fmt.Sprint(b.Lines)
}

// checkBlock reads a block and compares it with its record.
func checkBlock(ctx context.Context, b InspectBucket, s *catalog.Survey, block *catalog.Block) error {
	name := catalog.ObjectName(block.ID)
	read := func(ctx context.Context, off, n int64) ([]byte, error) { return b.GetRange(ctx, name, off, n) }
	r, err := part.OpenWith(ctx, &rangePages{read}, read, block.Bytes)
	if err != nil {
		return err
	}
	m := r.Meta()
	var named []catalog.Source
	for _, source := range m.Sources {
		named = append(named, catalog.Source(source))
	}
	switch {
	case m.Seed != s.Seed:
		err = fmt.Errorf("its key seed is %016x and the bucket's %016x", uint64(m.Seed), uint64(s.Seed))
	case !m.Labels:
		err = errors.New("it has no labels")
	case m.Signal != block.Signal || m.Series != block.Series || m.Samples != block.Samples || !sameLines(m, block) || m.Range != block.Range || len(m.Tenants) != block.TenantCount:
		err = fmt.Errorf("it has %d series, %d samples, %d lines of %d bytes, %d tenants, times %s; its record says otherwise", m.Series, m.Samples, m.Text, m.TextBytes, len(m.Tenants), timesOf(m.Range))
	case !slices.Equal(named, block.Sources):
		err = fmt.Errorf("it is of %s, its record says of %s", sources(named), sources(block.Sources))
	}
	if err == nil {
		err = compareSeries(ctx, r, block)
	}
	if err == nil {
		return part.Check(ctx, r)
	}
	if !errors.Is(err, model.ErrTransient) && !errors.Is(err, model.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", model.ErrCorrupt, err)
	}
	return err
}

// compareSeries compares tenants and keys with the record: queries and merges pass over blocks by them.
func compareSeries(ctx context.Context, r *part.Reader, block *catalog.Block) error {
	for _, t := range r.Meta().Tenants {
		if !block.HasTenant(t.Name) {
			return fmt.Errorf("it has the tenant %q, of which its record does not know", t.Name)
		}
	}
	stream := r.Stream()
	var first, last model.Key
	for n := 0; stream.Next(ctx); n++ {
		if last = stream.Key(); n == 0 {
			first = last
		}
		if last.Less(block.KeyMin) || block.KeyMax.Less(last) {
			return fmt.Errorf("it has the key %s, its record says %s to %s", last, block.KeyMin, block.KeyMax)
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	if first.Less(block.FirstKey) || block.LastKey.Less(last) {
		return fmt.Errorf("its series are from %s to %s, its record says %s to %s", first, last, block.FirstKey, block.LastKey)
	}
	return nil
}

// rangePages reads and decodes a page each time.
type rangePages struct{ read part.ReadRange }

func (p *rangePages) Page(ctx context.Context, a part.Addr) ([]byte, error) {
	stored, err := p.read(ctx, a.Off, int64(a.Len))
	if err != nil {
		return nil, err
	}
	return part.DecodePage(stored)
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

func matchers(ms []catalog.Matcher) string {
	var parts []string
	for _, m := range ms {
		parts = append(parts, m.String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
