package verify

import (
	"time"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/values"
)

// certainty says whether a sample must be in the store.
type certainty uint8

const (
	never   certainty = iota // was not sent
	perhaps                  // was sent, but not acknowledged
	surely                   // must be in the store
)

// origin computes the samples of a load a second time. A series is a number. If it is relabelled, it has
// several sets of labels in turn, each with the number of its cycle.
type origin interface {
	Total() int64
	// Matchers returns labels that tell a series, in all of its cycles, from all others of its tenant.
	Matchers(g int64) []fleet.Matcher
	LabelsOf(g int64, cycle int) map[string]string
	// CycleOf reads the number of the cycle out of labels.
	CycleOf(labels map[string]string) (int, bool)

	// rounds is the number of rounds that may have been sent, at least in part.
	rounds() int
	// ms returns the time of a sample in Unix milliseconds, roundAt which round may have a sample at a time.
	ms(g int64, round int) int64
	roundAt(g, ms int64) (round int, ok bool)
	cycle(g int64, round int) int
	value(g int64, round int, into *value)
	certainty(g int64, round int) certainty
	// ended returns the cycle that a stale marker ends in a round, and what is known of the marker.
	ended(g int64, round int) (cycle int, known certainty)
}

// value is the value of a sample: the bits of a float, or a histogram.
type value struct {
	bits      uint64
	histogram *values.Histogram
}

// origin returns the load that the state describes.
func (v *SampleVerifier) origin() origin {
	if f := v.State.RemoteWrite; f != nil {
		return newFleetOrigin(v.State)
	}
	return newAgentsOrigin(v.State, v.SentBefore)
}

// fleetOrigin knows which requests of remote write were acknowledged.
type fleetOrigin struct {
	*fleet.Fleet
	fleet.Course
	fleet.Reordering
	state *statefile.State
}

func newFleetOrigin(s *statefile.State) *fleetOrigin {
	o := &fleetOrigin{Fleet: s.RemoteWrite, state: s, Course: s.RemoteWrite.Course(s.Timeline)}
	if s.Disorder != nil {
		o.Reordering = s.Disorder.InRounds(s.Timeline, s.RemoteWrite.Seed)
	}
	return o
}

func (o *fleetOrigin) rounds() int {
	if o.state.Ended {
		return o.state.Acks.Rounds()
	}
	// The sending process was killed: batches of later rounds may have been in flight, but a shard is at most
	// a few rounds ahead of its responses.
	return o.state.Acks.Rounds() + roundsInFlight
}

// roundsInFlight is more than a shard can have sent without a response, which is one batch. It only widens
// the range in which unacknowledged samples are allowed.
const roundsInFlight = 2

func (o *fleetOrigin) moment(g int64, round int) fleet.Moment {
	p := o.Place(g)
	return o.Course.Moment(p.Target, o.Scrape(p), round)
}

func (o *fleetOrigin) ms(g int64, round int) int64 {
	m := o.moment(g, round)
	return m.Ns / int64(time.Millisecond)
}

func (o *fleetOrigin) roundAt(g, ms int64) (round int, ok bool) {
	d := ms*int64(time.Millisecond) - o.Course.Start
	if d < 0 {
		return 0, false
	}
	round = int(d / o.Course.Step) // the jitter is less than a step
	return round, o.ms(g, round) == ms
}

func (o *fleetOrigin) cycle(g int64, round int) int {
	return o.Course.Cycle(o.Place(g).Target, o.Course.At(round))
}

func (o *fleetOrigin) value(g int64, round int, into *value) {
	p := o.Place(g)
	m := o.Course.Moment(p.Target, o.Scrape(p), round)
	if o.Value.Histogram() {
		if into.histogram == nil {
			into.histogram = &values.Histogram{}
		}
		into.histogram.Fill(o.Value, o.GaugeHistogram(p.Metric), &m.Instant, o.Identity(p))
		return
	}
	into.bits = o.Value.Bits(&m.Instant, o.Identity(p))
}

// certainty returns the highest certainty of the requests that had the sample.
func (o *fleetOrigin) certainty(g int64, round int) certainty {
	if round < o.First(o.Place(g).Target) {
		return never
	}
	batch, _ := o.BatchOf(g, o.state.Batch)
	first, second := o.Sendings(g, round)
	known := o.batchCertainty(first, batch)
	if second != first {
		known = max(known, o.batchCertainty(second, batch))
	}
	return known
}

func (o *fleetOrigin) batchCertainty(round, batch int) certainty {
	switch {
	case o.state.Acks.Acked(round, batch):
		return surely
	case !o.state.Ended, o.state.Acks.Tried(round, batch):
		return perhaps
	}
	return never
}

func (o *fleetOrigin) ended(g int64, round int) (cycle int, known certainty) {
	cycle, ok := o.Course.Ended(o.Place(g).Target, round)
	if !ok {
		return 0, never
	}
	batch, _ := o.BatchOf(g, o.state.Batch)
	return cycle, o.batchCertainty(round, batch)
}
