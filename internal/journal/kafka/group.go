package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GroupOptions configure a Group. Its functions are never called at the same time.
type GroupOptions struct {
	Connection Connection
	Topic      string
	// TopicID is the recorded one.
	TopicID string
	// Partitions are as many as are recorded. Further ones of the topic belong to no member.
	Partitions int32
	// Group is the name of the group, and Member that of this process in it. A process that comes back by the
	// same name within the session gets the partitions again that it had.
	Group, Member string

	// Take is told of partitions that this member has from now on, also if there are none more: the group has
	// divided all. It must not wait.
	Take func(partitions []int32)
	// Release lets partitions go that another member gets afterwards. Until it returns, that member waits, and
	// this one keeps its other partitions. The context ends early enough for the session to go on.
	Release func(ctx context.Context, partitions []int32)
	// Lose is told of partitions that other members may have already: the session has ended.
	Lose   func(partitions []int32)
	Logger *slog.Logger
}

// Group is the membership of this process in a group that divides the partitions of a topic. It reads no
// record and commits no offset: where a partition goes on is what the catalogue says. It is safe for
// concurrent use.
type Group struct {
	o      GroupOptions
	client *kgo.Client
	failed atomic.Pointer[error]
	in     atomic.Bool
}

const (
	// session is how long a process may be silent before others get its partitions.
	session = 60 * time.Second
	// rebalance is how long a member may take to let partitions go while others wait for it.
	rebalance = 60 * time.Second
	// release leaves a member time to join again.
	release = 45 * time.Second
	// heartbeat bounds how late a member learns that partitions are divided again. That takes two rounds.
	heartbeat = time.Second
)

// retryTimeout bounds a request of a member with its repetitions: a session lives longer than a question.
func retryTimeout(key int16) time.Duration {
	switch kmsg.Key(key) {
	case kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat:
		return session
	}
	return askTimeout
}

// JoinGroup joins a group. It refuses a topic that is not the recorded one.
func JoinGroup(ctx context.Context, o GroupOptions) (*Group, error) {
	g := &Group{o: o}
	asking, err := o.Connection.client()
	if err != nil {
		return nil, err
	}
	t, err := placement(ctx, asking, o.Topic)
	asking.Close()
	if err == nil {
		err = t.is(o.TopicID, o.Partitions)
	}
	if err != nil {
		return nil, err
	}
	g.client, err = o.Connection.client(
		kgo.WithHooks(g),
		kgo.ConsumerGroup(o.Group),
		kgo.InstanceID(o.Member),
		kgo.ConsumeTopics(o.Topic),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(session),
		kgo.RebalanceTimeout(rebalance),
		kgo.HeartbeatInterval(heartbeat),
		kgo.RetryTimeoutFn(retryTimeout),
		kgo.DisableAutoCommit(),
		// Nothing is read: the topic is paused. Without this, each assignment asks for offsets that do not matter.
		kgo.AdjustFetchOffsetsFn(func(_ context.Context, all map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
			for _, of := range all {
				for p := range of {
					of[p] = kgo.NewOffset().At(0)
				}
			}
			return all, nil
		}),
		kgo.OnPartitionsAssigned(func(_ context.Context, cl *kgo.Client, all map[string][]int32) {
			cl.PauseFetchTopics(o.Topic)
			g.in.Store(true)
			g.failed.Store(nil)
			if len(all[o.Topic]) == 0 {
				o.Take(nil)
				return
			}
			g.call("this process has partitions", all, o.Take)
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, _ *kgo.Client, all map[string][]int32) {
			ctx, cancel := context.WithTimeout(ctx, release)
			defer cancel()
			g.call("partitions go to other processes", all, func(of []int32) { o.Release(ctx, of) })
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, all map[string][]int32) {
			g.call("the session of this process has ended, and its partitions are lost", all, o.Lose)
		}),
	)
	if err != nil {
		return nil, err
	}
	g.client.PauseFetchTopics(o.Topic)
	return g, nil
}

// call tells of the recorded partitions among some.
func (g *Group) call(what string, all map[string][]int32, of func([]int32)) {
	own := slices.DeleteFunc(slices.Clone(all[g.o.Topic]), func(p int32) bool { return p >= g.o.Partitions })
	if len(own) == 0 {
		return
	}
	slices.Sort(own)
	g.o.Logger.Info(what, "group", g.o.Group, "partitions", own)
	of(own)
}

var _ kgo.HookGroupManageError = (*Group)(nil)

// OnGroupManageError notes why the process is not a member now.
func (g *Group) OnGroupManageError(err error) {
	g.in.Store(false)
	err = fmt.Errorf("kafka: group %s: %w", g.o.Group, classified(err))
	g.failed.Store(&err)
	g.o.Logger.Warn("this process is not in the group; joining again", "group", g.o.Group, "member", g.o.Member, "err", err)
}

// Joined reports whether the process is a member, and otherwise why not, as far as that is known.
func (g *Group) Joined() (bool, error) {
	if err := g.failed.Load(); err != nil {
		return false, *err
	}
	return g.in.Load(), nil
}

// Leave releases all partitions, and tells the others that this process has gone for good: they need not wait
// until its session ends.
func (g *Group) Leave(ctx context.Context) error {
	defer g.client.Close()
	// The client itself does not take a member out of the group that has a name.
	err := g.client.LeaveGroupContext(ctx)
	all, err2 := kadm.NewClient(g.client).LeaveGroup(ctx, kadm.LeaveGroup(g.o.Group).InstanceIDs(g.o.Member).Reason("the process ends"))
	for _, of := range all {
		if err2 == nil && !isGone(of.Err) {
			err2 = of.Err
		}
	}
	if err == nil {
		err = err2
	}
	if err != nil {
		return fmt.Errorf("kafka: leaving group %s: %w", g.o.Group, classified(err))
	}
	return nil
}

// isGone reports whether a member that should leave was not there.
func isGone(err error) bool { return err == nil || errors.Is(err, kerr.UnknownMemberID) }
