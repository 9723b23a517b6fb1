package selection

import (
	"context"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// batchRows and batchBytes are how many rows of a chunk, and bytes of their lines, are filtered at a time.
// After each batch the scan checks whether more can be wanted and whether the query has ended: a regular
// expression may take long.
const (
	batchRows  = 512
	batchBytes = 128 << 10
)

// scanner scans the pieces of a selection. It belongs to one worker.
type scanner struct {
	x      *Execution
	l      *layout
	crew   *crew // nil: it is alone
	pages  *pages
	filter RowFilter
	stages LineStages
	probe  LineStages // nil: none
	worker Worker     // of a Counter, which runs the stages; else nil
	whole  bool       // the worker counts whole lines
	// distinct are the times of the chunks of a piece that counts whole lines, each once for each chunk.
	distinct []int64

	processor *model.Processor
	wait      waiter

	page  int32   // that the current task holds, or -1
	using []int32 // pages that the current piece holds besides
	piece *piece
	// streamSet says that the stages know the stream of the piece.
	streamSet bool
	line      Line

	chunks  []chunk // of the current piece
	merging merging
	narrow  narrowing
	tally   tally
	misses  misses
}

// tally is what one task has counted.
type tally struct {
	lines, bytes, metadata, kept, duplicates int64
}

// chunk is what is read of a chunk of the current piece.
type chunk struct {
	*model.TextChunk
	rows     model.TextRows
	metadata model.TextRows // the same rows, without lines; read when the first of them is wanted
	has      model.TextWant
	first    int // the first row whose line has been read
	lo, hi   int // the rows within the bounds
	passed   []int32
	// split are the lines of its page if they were not put together, and firstSplit is its first line there.
	split      *model.SplitText
	firstSplit int
}

func (s *scanner) newChunk(n int) *chunk {
	for len(s.chunks) <= n {
		s.chunks = append(s.chunks, chunk{})
	}
	r := &s.chunks[n]
	r.has, r.passed, r.split = 0, r.passed[:0], nil
	return r
}

// task scans the pieces of a task, and stops where no further one can change the answer.
func (s *scanner) task(ctx context.Context, u *task) error {
	if s.page = u.page; s.page >= 0 {
		// The page is asked and held once for all pieces: there may be thousands.
		if skip, err := s.skips(ctx, s.page); err != nil || skip {
			s.pages.forget(s.page, u.chunks)
			return err
		}
		s.pages.use(s.page)
	}
	err := s.scanPieces(ctx, u)
	if s.page >= 0 {
		s.pages.done(s.page)
		s.pages.forget(s.page, u.chunks)
	} else {
		for _, at := range u.pieces {
			p := &s.l.pieces[at]
			for i := p.from; i < p.to; i++ {
				s.pages.forget(s.l.pageOf[i], 1)
			}
		}
	}
	s.flush()
	return err
}

// skips reports whether a page has no line that could be wanted.
func (s *scanner) skips(ctx context.Context, page int32) (skip bool, err error) {
	if !s.x.filtered {
		return false, nil
	}
	for again := s.begin(); again; again = err != nil && s.again(ctx, err) {
		skip, err = s.pages.skip(ctx, page)
	}
	return skip, err
}

// hold says that the current piece reads a page, which the task does not hold.
func (s *scanner) hold(page int32) {
	s.pages.use(page)
	s.using = append(s.using, page)
}

func (s *scanner) scanPieces(ctx context.Context, u *task) error {
	left, bounds := u.pieces, u.TimeRange
	if s.x.Program.KeepsAll && s.x.sink.Limit() > 0 && (len(u.pieces) > 1 || !s.l.pieces[u.pieces[0]].single()) {
		var err error
		if left, bounds, err = s.narrowed(ctx, u); err != nil {
			return err
		}
	}
	for _, at := range left {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := &s.l.pieces[at]
		if !s.x.wants(s.x.Direction.First(p.TimeRange)) {
			if s.x.counter != nil { // the pieces are in no order of time
				continue
			}
			break
		}
		if err := s.scan(ctx, p, bounds); err != nil {
			return err
		}
	}
	return nil
}

// scan scans a piece within bounds and offers what it finds. It begins again if others needed its memory.
func (s *scanner) scan(ctx context.Context, p *piece, bounds model.TimeRange) error {
	for {
		before := s.tally
		err := s.scanOnce(ctx, p, bounds)
		s.wait.yields = false
		for _, at := range s.using {
			s.pages.done(at)
		}
		s.using = s.using[:0]
		if !s.wait.gaveUp {
			return err
		}
		s.tally = before
		if err := s.comeBack(ctx); err != nil {
			return err
		}
	}
}

func (s *scanner) scanOnce(ctx context.Context, p *piece, bounds model.TimeRange) error {
	bounds = s.x.Direction.Cut(within(p.TimeRange, bounds), s.x.sink.Bound())
	if bounds.Min > bounds.Max {
		return nil
	}
	s.piece, s.streamSet, s.wait.yields = p, false, true
	s.processor.Enter(ctx)
	n, err := s.openChunks(ctx, p, bounds)
	s.processor.Enter(ctx) // it may have waited for pages
	switch {
	case err != nil || n == 0:
	case s.whole:
		err = s.countAll(ctx, s.chunks[:n], bounds)
	case n == 1:
		if err = s.single(ctx, &s.chunks[0]); s.chunks[0].split != nil {
			s.misses = misses{}
		}
	default:
		err = s.merge(ctx, s.chunks[:n])
	}
	return err
}

// openChunks reads what of the chunks of a piece lies within bounds, and returns how many of them have
// something.
func (s *scanner) openChunks(ctx context.Context, p *piece, bounds model.TimeRange) (n int, err error) {
	for i := p.from; i < p.to; i++ {
		c, at := &s.l.chunks[i], s.l.pageOf[i]
		if !c.Overlaps(bounds) {
			continue
		}
		if at != s.page {
			skip, err := s.skips(ctx, at)
			if err != nil {
				return 0, err
			}
			if skip {
				continue
			}
			s.hold(at)
		}
		r := s.newChunk(n)
		r.TextChunk = c
		some, err := s.open(ctx, r, bounds, p.single())
		if err != nil {
			return 0, err
		}
		if some {
			n++
		}
	}
	return n, nil
}

// open reads what of a chunk lies within bounds: only its times, if no row does, and else its lines. alone
// says that it is not to be merged with others.
func (s *scanner) open(ctx context.Context, r *chunk, bounds model.TimeRange, alone bool) (bool, error) {
	want := model.WantLines
	if s.whole {
		s.setStream()
		if s.filter == nil {
			want = s.worker.Want()
		}
	}
	// Both ends of the chunk are times of rows.
	if want&model.WantLines != 0 && !bounds.Contains(r.Min) && !bounds.Contains(r.Max) {
		if err := s.read(ctx, r, 0); err != nil {
			return false, err
		}
		if r.clip(bounds); r.lo == r.hi {
			return false, nil
		}
	}
	if alone && s.x.wantsNewest() {
		if err := s.readNewest(ctx, r, bounds); err != nil {
			return false, err
		}
	} else if err := s.readLines(ctx, r, want, alone); err != nil {
		return false, err
	}
	r.clip(bounds)
	return r.lo < r.hi, nil
}

// wantsNewest reports whether of each chunk only the newest lines can be wanted, as many as the limit says.
func (x *Execution) wantsNewest() bool {
	return x.Program.KeepsAll && x.sink.Limit() > 0 && x.Direction == Backward
}

// readNewest reads a chunk, of its lines perhaps only the newest ones within bounds that can be wanted.
func (s *scanner) readNewest(ctx context.Context, r *chunk, bounds model.TimeRange) (err error) {
	from := func(times []int64) int {
		lo := sort.Search(len(times), func(i int) bool { return times[i] >= bounds.Min })
		hi := sort.Search(len(times), func(i int) bool { return times[i] > bounds.Max })
		first := max(lo, hi-s.x.sink.Limit())
		for first > lo && times[first-1] == times[first] { // of one time all are wanted
			first--
		}
		return first
	}
	for again := s.begin(); again; again = err != nil && s.again(ctx, err) {
		r.rows.Reset()
		r.first, err = read.ReadTextEnd(ctx, r.TextChunk, model.WantLines|model.WantNewest, from, &r.rows)
	}
	r.has = model.WantLines
	return err
}

func (s *scanner) read(ctx context.Context, r *chunk, want model.TextWant) error {
	if err := s.readText(ctx, r, want, &r.rows); err != nil {
		return err
	}
	r.has, r.first = want, 0
	return nil
}

// readText reads rows of a chunk, once more if there was no memory and is now.
func (s *scanner) readText(ctx context.Context, r *chunk, want model.TextWant, dst *model.TextRows) (err error) {
	for again := s.begin(); again; again = err != nil && s.again(ctx, err) {
		dst.Reset()
		err = r.Page.ReadText(ctx, r.Index, want, dst)
	}
	return err
}

// metadataOf returns the structured metadata of a row.
func (s *scanner) metadataOf(ctx context.Context, r *chunk, row int) (model.Labels, error) {
	if err := s.readMetadata(ctx, r); err != nil {
		return nil, err
	}
	return r.metadata.MetadataAt(row), nil
}

// readMetadata reads the structured metadata of a chunk, unless that was done.
func (s *scanner) readMetadata(ctx context.Context, r *chunk) error {
	if r.has&model.WantMetadata != 0 {
		return nil
	}
	if err := s.readText(ctx, r, model.WantMetadata, &r.metadata); err != nil {
		return err
	}
	r.has |= model.WantMetadata
	return nil
}

// clip finds the rows within bounds.
func (r *chunk) clip(bounds model.TimeRange) {
	times := r.rows.Times
	r.lo = sort.Search(len(times), func(i int) bool { return times[i] >= bounds.Min })
	r.hi = r.lo + sort.Search(len(times)-r.lo, func(i int) bool { return times[r.lo+i] > bounds.Max })
}

// match adds those of rows [from, to) of a run to its selection whose lines pass.
func (s *scanner) match(ctx context.Context, r *chunk, from, to int) error {
	s.tally.lines += int64(to - from)
	s.tally.bytes += int64(r.rows.Ends[to-1] - r.begin(from))
	if s.filter != nil {
		// A filter whose time is over drops what it likes.
		r.passed = s.filter.Select(r.passed, &r.rows, from, to)
		return ctx.Err()
	}
	for i := from; i < to; i++ {
		r.passed = append(r.passed, int32(i))
	}
	return nil
}

// begin returns where line i begins.
func (r *chunk) begin(i int) uint32 {
	if i == 0 {
		return r.rows.Begin
	}
	return r.rows.Ends[i-1]
}

// batch returns the next rows of a run to filter, from the end that is wanted.
func (r *chunk) batch(d Direction) (from, to int) {
	if d == Backward {
		for from, to = r.hi-1, r.hi; from > max(r.lo, r.first) && to-from < batchRows && r.rows.Ends[to-1]-r.begin(from) < batchBytes; from-- {
		}
		return from, to
	}
	for from, to = r.lo, r.lo+1; to < r.hi && to-from < batchRows && r.rows.Ends[to-1]-r.begin(from) < batchBytes; to++ {
	}
	return from, to
}

// matchAll filters all rows of a run.
func (s *scanner) matchAll(ctx context.Context, r *chunk) error {
	for r.lo < r.hi {
		if err := ctx.Err(); err != nil {
			return err
		}
		from, to := r.batch(Forward)
		if err := s.match(ctx, r, from, to); err != nil {
			return err
		}
		r.lo = to
	}
	return nil
}

// single scans a piece of one chunk, from the end that is wanted, until nothing more of it can be.
func (s *scanner) single(ctx context.Context, r *chunk) error {
	for r.lo < r.hi {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.hi <= r.first {
			if err := s.read(ctx, r, model.WantLines); err != nil {
				return err
			}
		}
		from, to := r.batch(s.x.Direction)
		r.passed = r.passed[:0]
		if err := s.match(ctx, r, from, to); err != nil {
			return err
		}
		for i, row := range r.passed {
			if s.x.Direction == Backward {
				row = r.passed[len(r.passed)-1-i]
			}
			if err := s.offer(ctx, r, int(row), row); err != nil {
				return err
			}
		}
		next := to
		if s.x.Direction == Backward {
			r.hi, next = from, from-1
		} else {
			r.lo = to
		}
		if r.lo < r.hi && !s.x.wants(r.rows.Times[next]) {
			return nil
		}
	}
	return nil
}

// offer runs the stages on a row and hands what they leave to the collector. n is the row's number in its
// piece.
func (s *scanner) offer(ctx context.Context, r *chunk, row int, n int32) error {
	at := r.rows.Times[row]
	if !s.x.wants(at) {
		return nil
	}
	if s.whole { // of chunks that are merged
		s.setStream()
		return s.countRow(ctx, r, row)
	}
	if err := ctx.Err(); err != nil { // stages may take long for a single line
		return err
	}
	metadata, err := s.metadataOf(ctx, r, row)
	if err != nil {
		return err
	}
	for name, value, rest, ok := metadata.Next(); ok; name, value, rest, ok = rest.Next() {
		s.tally.metadata += int64(len(name) + len(value))
	}
	s.setStream()
	st := &s.x.streams[s.piece.stream]
	if r.split != nil {
		s.setLine(st, at, n, nil, metadata)
		if known, err := s.offerSplit(ctx, r, row); known || err != nil {
			return err
		}
	}
	s.wait.yields = false
	text := r.rows.Line(row)
	if s.worker != nil {
		s.setLine(st, at, n, text, metadata)
		ok, err := s.worker.Line(&s.line)
		if ok {
			s.tally.kept++
		}
		return err
	}
	if s.probe != nil {
		if ok, err := s.probe.Process(at, text, metadata, &s.line.Result); err != nil || !ok {
			return err
		}
	}
	if ok, err := s.stages.Process(at, text, metadata, &s.line.Result); err != nil || !ok {
		return err
	}
	s.tally.kept++
	s.setLine(st, at, n, text, metadata)
	return s.x.collector.Offer(&s.line)
}

// setStream tells the stages of which stream the piece is.
func (s *scanner) setStream() {
	if s.streamSet {
		return
	}
	s.streamSet = true
	st := &s.x.streams[s.piece.stream]
	if s.worker != nil {
		s.worker.SetStream(st.tenant, st.labels)
		return
	}
	s.stages.SetStream(st.labels)
	if s.probe != nil {
		s.probe.SetStream(st.labels)
	}
}

// setLine fills in a line, but for its result.
func (s *scanner) setLine(st *stream, at int64, n int32, text []byte, metadata model.Labels) {
	l := &s.line
	l.Time, l.Tenant, l.Position = at, st.tenant, position(s.x.base+s.piece.number, n)
	l.Stream, l.Text, l.Metadata = st.labels, text, metadata
}

// flush adds what was counted to the figures of the query.
func (s *scanner) flush() {
	t := &s.tally
	s.x.stats.lines.Add(t.lines)
	s.x.stats.bytes.Add(t.bytes)
	s.x.Cost.TextLines.Add(t.lines)
	s.x.Cost.TextBytes.Add(t.bytes)
	s.x.stats.metadata.Add(t.metadata)
	s.x.stats.kept.Add(t.kept)
	s.x.stats.duplicates.Add(t.duplicates)
	*t = tally{}
}
