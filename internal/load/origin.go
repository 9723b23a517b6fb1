package load

import "fmt"

// origin gives the load that the state is of.
func (v *Verifier) origin() origin {
	if f := v.State.RemoteWrite; f != nil {
		return &fleetOrigin{Fleet: f, state: v.State}
	}
	return newAgentsOrigin(v.State, v.SentBefore)
}

// fleetOrigin knows of remote write what was answered.
type fleetOrigin struct {
	*Fleet
	state *State
}

func (o *fleetOrigin) rounds() int {
	if o.state.Ended {
		return o.state.Acks.Rounds()
	}
	// The process that sent was killed: batches of later rounds may have been on their way, but no shard is more
	// than a few rounds ahead of what was answered.
	return o.state.Acks.Rounds() + roundsInFlight
}

// roundsInFlight is more than a shard can have sent without an answer, which is one batch; it only widens the range
// in which samples that nobody acknowledged are expected.
const roundsInFlight = 2

func (o *fleetOrigin) standing(g int64, round int) standing {
	return o.batchStanding(round, int(g/int64(o.state.Batch)))
}

func (o *fleetOrigin) batchStanding(round, batch int) standing {
	switch {
	case o.state.Acks.Acked(round, batch):
		return surely
	case !o.state.Ended, o.state.Acks.Tried(round, batch):
		return perhaps
	}
	return never
}

// agentsOrigin knows of a Graphite load what was written, and how much of it the server has said to have received.
type agentsOrigin struct {
	*Agents
	state *State
	// intact is set if nothing happened that could lose a point that was written.
	intact bool
	// prefix is how many points of the only connection must be there although something happened.
	prefix uint64
	// sentBefore is how many points must be there in all, if the caller knows better than the server's counter.
	sentBefore uint64
	last       int
}

func newAgentsOrigin(s *State, sentBefore uint64) *agentsOrigin {
	o := &agentsOrigin{Agents: s.Graphite, state: s, sentBefore: sentBefore}
	o.intact = s.Ended && !s.Graphite.UDP && !s.Trail.Broken && !s.Trail.Died() && sentBefore == 0
	if s.Graphite.Connections == 1 && !s.Graphite.UDP {
		o.prefix = sentBefore
		if sentBefore == 0 {
			o.prefix = s.Trail.lives().first
		}
	}
	for i, sent := range s.Trail.Sent {
		per := s.Graphite.perRound(i)
		o.last = max(o.last, int((sent+per-1)/per))
	}
	if !s.Ended {
		o.last = int(s.Trail.Kept()/uint64(s.Graphite.Total())) + connectionsApart
	}
	return o
}

// connectionsApart is by how many rounds one connection may be ahead of what all of them have sent on average. It
// bounds what is looked at when the process that sent was killed.
const connectionsApart = 16

func (o *agentsOrigin) rounds() int { return o.last }

func (o *agentsOrigin) standing(g int64, round int) standing {
	c, at := o.position(g, round)
	switch {
	case o.state.Ended && at >= o.state.Trail.Sent[c]:
		return never
	case o.intact || at < o.prefix:
		return surely
	}
	return perhaps
}

// Selector returns a PromQL selector that only this series satisfies.
func (a *Agents) Selector(g int64) string { return fmt.Sprintf("{__name__=%q}", a.Path(g)) }

// LabelsOf returns the labels of a series by name.
func (a *Agents) LabelsOf(g int64) map[string]string {
	return map[string]string{"__name__": a.Path(g)}
}
