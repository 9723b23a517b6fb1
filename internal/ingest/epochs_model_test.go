package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/racetest"
)

// The model of a topic that another one follows. One sender sends the values 1, 2, ... of one series and
// time, each through another gateway, once the one before was acknowledged. So the last one must win in the
// end. A command seals the old topic, asks where it ends, and records the next epoch. Two processes believe
// that the old partition is theirs, and two that the new one is. All orders of their steps are tried, with
// lost responses, and with kills of every process at every step. States that were seen are not gone through
// again.
//
// A step of the model is one request to Kafka or to the bucket, and an append to the old topic has two:
// brokers compare the size of a record before they take the lock of the log. That a ship is one step is what
// the small worlds of package catalog show.

const (
	modelValues = 3
	modelLog    = modelValues + 2 // with repetitions
)

// modelLife is a process that believes that a partition is its own.
type modelLife struct {
	running bool
	// from and ship are what it knows of the journal, and it has read up to to.
	from, to, ship int8
	knowsEnd       bool
}

// modelState is a state of the world.
type modelState struct {
	logs     [2][modelLog]int8 // of the old topic and the new one
	lens     [2]int8
	sealed   bool
	recorded bool
	ends     int8 // as recorded

	step int8 // of the command
	seen int8 // the end that it was told

	value   int8 // that is being sent
	held    bool // the broker of the old topic has compared its size, and has not appended it
	gateway [2]int8
	acked   int8

	lives   [2][2]modelLife // by partition
	covered [2]int8
	ships   [2]int8
	closed  bool
	visible [2 * modelLog]int8 // in the order of ships
	shown   int8

	lost, kills int8 // how many there may still be
}

// modelRules are the rules of the protocol. A test breaks each of them.
type modelRules struct {
	seals, sealsFirst, waits, closesAtEnd, asksAgain, fencesLives bool
}

var allRules = modelRules{true, true, true, true, true, true}

// next returns the states after one step, with what the step was.
func (r *modelRules) next(s modelState) (all []modelState, names []string) {
	add := func(t modelState, format string, args ...any) {
		all, names = append(all, t), append(names, fmt.Sprintf(format, args...))
	}
	r.send(s, add)
	r.command(s, add)
	for p := range 2 {
		for i := range 2 {
			r.live(s, p, i, add)
		}
	}
	return all, names
}

// send is a step of the gateway that has the sender's value.
func (r *modelRules) send(s modelState, add func(modelState, string, ...any)) {
	if s.value > modelValues {
		return
	}
	g := s.value % 2
	topic := s.gateway[g]
	if topic == 0 && s.sealed && !s.held {
		if s.recorded { // refused, and the bucket says which topic follows
			s.gateway[g] = 1
			add(s, "gateway %d goes on", g)
		}
		return
	}
	if s.lens[topic] == modelLog {
		return
	}
	if topic == 0 && !s.held { // nothing holds the append and the seal apart
		s.held = true
		add(s, "the broker has compared the size of %d", s.value)
		return
	}
	s.held = false
	s.logs[topic][s.lens[topic]] = s.value
	s.lens[topic]++
	if s.lost > 0 {
		t := s
		t.lost--
		add(t, "gateway %d appends %d to topic %d, and the response is lost", g, s.value, topic)
	}
	s.acked, s.value = s.value, s.value+1
	add(s, "gateway %d appends %d to topic %d", g, s.acked, topic)
}

// command is a step of the command: seal, ask for the end, record.
func (r *modelRules) command(s modelState, add func(modelState, string, ...any)) {
	order := []string{"seal", "ask", "record"}
	switch {
	case !r.seals:
		order = []string{"ask", "record"}
	case !r.sealsFirst:
		order = []string{"ask", "record", "seal"}
	}
	if int(s.step) == len(order) {
		return
	}
	if s.kills > 0 && s.step > 0 && !s.recorded {
		t := s
		t.kills, t.step = t.kills-1, 0
		add(t, "the command is killed, and run again")
	}
	what := order[s.step]
	switch s.step++; what {
	case "seal":
		s.sealed = true
	case "ask":
		s.seen = s.lens[0]
	case "record":
		s.recorded, s.ends = true, s.seen
	}
	add(s, "the command: %s", what)
}

// live is a step of a process that has a partition.
func (r *modelRules) live(s modelState, p, i int, add func(modelState, string, ...any)) {
	l := &s.lives[p][i]
	who := fmt.Sprintf("life %d of partition %d", i, p)
	if !l.running {
		if p == 0 && s.closed || p == 1 && (!s.recorded || r.waits && !s.closed) {
			return
		}
		*l = modelLife{true, s.covered[p], s.covered[p], s.ships[p], false}
		add(s, "%s begins at %d", who, l.from)
		return
	}
	if s.kills > 0 {
		t := s
		t.kills--
		t.lives[p][i] = modelLife{}
		add(t, "%s is killed", who)
	}
	if p == 0 && s.recorded && !l.knowsEnd {
		t := s
		t.lives[p][i].knowsEnd = true
		add(t, "%s learns the end", who)
	}
	if l.to < s.lens[p] && !(p == 0 && l.knowsEnd && l.to >= s.ends && !r.asksAgain) {
		t := s
		t.lives[p][i].to++
		add(t, "%s reads %d", who, s.logs[p][l.to])
	}
	atEnd := l.to == s.ends
	if r.asksAgain { // a broker holds up no append from before the seal until now
		atEnd = l.to >= s.ends && l.to == s.lens[0] && !s.held
	}
	closes := p == 0 && l.knowsEnd && l.from == l.to && (atEnd || !r.closesAtEnd)
	if l.to == l.from && !closes {
		return
	}
	if r.fencesLives && (l.ship != s.ships[p] || l.from != s.covered[p]) {
		*l = modelLife{}
		add(s, "%s is overtaken", who)
		return
	}
	if int(s.shown)+int(l.to-l.from) > len(s.visible) {
		return
	}
	for ; l.from < l.to; l.from++ {
		s.visible[s.shown] = s.logs[p][l.from]
		s.shown++
	}
	s.covered[p] = l.to
	s.ships[p]++
	l.ship = s.ships[p]
	if closes {
		s.closed = true
		*l = modelLife{}
		add(s, "%s closes it", who)
		return
	}
	add(s, "%s ships up to %d", who, l.to)
}

// wrong returns what is wrong in a state; empty: nothing.
func (s *modelState) wrong(last bool) string {
	if s.covered[1] > 0 && s.covered[0] < s.lens[0] {
		return "a row of the old topic is not in the bucket, and one of the new topic is"
	}
	at := map[int8]int{}
	for i, v := range s.visible[:s.shown] {
		at[v] = i
	}
	if s.covered[0]+s.covered[1] != s.shown {
		return "a row is in the bucket twice, or not at all"
	}
	if !last {
		return ""
	}
	for v := int8(1); v <= s.acked; v++ {
		i, there := at[v]
		if !there {
			return fmt.Sprintf("value %d was acknowledged and is nowhere", v)
		}
		if v > 1 && i < at[v-1] {
			return fmt.Sprintf("value %d counts as newer than %d", v-1, v)
		}
	}
	if s.acked < modelValues || !s.closed {
		return "the world stands still"
	}
	return ""
}

// explore goes through all states, and returns how many there are and how it came to a wrong one.
func (r *modelRules) explore(begin modelState) (states int, trace []string) {
	type link struct {
		from modelState
		name string
	}
	came := map[modelState]link{begin: {}}
	trail := func(s modelState) (names []string) {
		for s != begin {
			l := came[s]
			names, s = append(names, l.name), l.from
		}
		slices.Reverse(names)
		return names
	}
	for queue := []modelState{begin}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		all, names := r.next(s)
		last := s.acked == modelValues && s.covered == s.lens && s.closed // nothing is left to do, whatever follows
		if why := s.wrong(last || len(all) == 0); why != "" {
			return len(came), append(trail(s), why)
		}
		for i, t := range all {
			if _, seen := came[t]; !seen {
				came[t] = link{s, names[i]}
				queue = append(queue, t)
			}
		}
	}
	return len(came), nil
}

// TestEpochsModel: with all rules, no order of steps loses, doubles or reorders a row, or ends before all are
// in the bucket. Without any one of them, some order does.
func TestEpochsModel(t *testing.T) {
	racetest.SkipSerial(t)
	begin := modelState{value: 1, lost: 1, kills: 1}
	rules := allRules
	states, trace := rules.explore(begin)
	if trace != nil {
		t.Errorf("after %d states:\n%s", states, strings.Join(trace, "\n"))
	}
	t.Logf("%d states", states)
	for name, breaks := range map[string]func(*modelRules){
		"gateways may write for ever":               func(r *modelRules) { r.seals = false },
		"the epoch is recorded before the seal":     func(r *modelRules) { r.sealsFirst = false },
		"the new partition does not wait":           func(r *modelRules) { r.waits = false },
		"the partition is closed before it is read": func(r *modelRules) { r.closesAtEnd = false },
		"the leader is not asked before the close":  func(r *modelRules) { r.asksAgain = false },
		"of two lives both ship":                    func(r *modelRules) { r.fencesLives = false },
	} {
		broken := allRules
		breaks(&broken)
		n, trace := broken.explore(begin)
		if trace == nil {
			t.Errorf("%s, and nothing is wrong in %d states", name, n)
			continue
		}
		t.Logf("%s: %s", name, strings.Join(trace, "; "))
	}
}
