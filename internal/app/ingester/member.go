package ingester

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/topics"
)

// Member is this process in the group whose members divide the partitions of a topic. A nil Member is that of
// a process whose partitions are settings.
type Member struct {
	group *kafka.Group
	name  string // of the group
	owner *ingest.Owner
	log   *slog.Logger
	leave sync.Once
	// heirs is how long the next owners of partitions may take.
	heirs time.Duration
}

// Join joins the group. From then on it says what the owner holds.
func Join(ctx context.Context, c *config.Config, epoch *topics.Epoch, owner *ingest.Owner, log *slog.Logger) (*Member, error) {
	connection := c.Kafka.Connection()
	connection.Log = log
	m := &Member{name: c.GroupName(epoch.Number, epoch.Topic), owner: owner, log: log, heirs: heirTime}
	if c.Roles.Ship != "on" { // the processes that ship have the partitions, too
		m.heirs = idleTime
	}
	var err error
	m.group, err = kafka.JoinGroup(ctx, kafka.GroupOptions{
		Connection: connection, Topic: epoch.Topic, TopicID: epoch.ID, Partitions: epoch.Partitions, Group: m.name, Member: memberName(c), Logger: log,
		Take:    func(partitions []int32) { owner.Hold(partitions...) },
		Release: func(ctx context.Context, partitions []int32) { owner.Release(ctx, partitions...) },
		Lose:    func(partitions []int32) { owner.Lose(partitions...) },
	})
	return m, err
}

// memberName is the same when the process starts again in its place: then it has the same address.
func memberName(c *config.Config) string {
	host, err := os.Hostname()
	if err != nil {
		host = "shale"
	}
	if _, port, err := net.SplitHostPort(c.HTTPListen); err == nil {
		host += ":" + port
	}
	return host
}

// Ready returns why the process is not in the group, or nil. A member without partitions is ready.
func (m *Member) Ready() error {
	if m == nil {
		return nil
	}
	joined, err := m.group.Joined()
	if !joined && err == nil {
		err = fmt.Errorf("%w: joining the group %s", model.ErrTransient, m.name)
	}
	return err
}

const (
	// leaveTime bounds the last ships of all partitions, and the word to the group.
	leaveTime = 50 * time.Second
	// heirTime is how long the next owners of partitions may take until queries find there what this process
	// has.
	heirTime = 15 * time.Second
	// idleTime is the same for partitions without rows that would show it.
	idleTime = 5 * time.Second
)

// Leave ships all partitions, leaves the group, and waits until other processes have the partitions. It does
// nothing the second time.
func (m *Member) Leave() {
	if m != nil {
		m.leave.Do(m.handOver)
	}
}

func (m *Member) handOver() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	if err := m.group.Leave(ctx); err != nil {
		m.log.Warn("stopping: cannot leave the group; others get the partitions when the session ends, after a minute", "group", m.name, "err", err)
		return
	}
	ctx, cancel = context.WithTimeout(context.Background(), m.heirs)
	defer cancel()
	if left := m.owner.Succeeded(ctx, idleTime); left > 0 {
		m.log.Warn("stopping: no other process has shipped partitions of this one yet; queries wait for it", "partitions", left)
	}
	m.log.Info("left the group", "group", m.name, "after", time.Since(began).Round(time.Millisecond))
}
