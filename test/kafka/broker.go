package kafka

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/test/ports"
)

// The user that may log in at the secure listener.
const (
	User     = "shale"
	Password = "of-the-test"
)

// Broker is a cluster of one server.
type Broker struct {
	// Addr is the address of a listener without TLS and login, and Secure that of one with both.
	Addr, Secure string
	// CA is a PEM file with the authority of Secure.
	CA string

	mu     sync.Mutex
	topics map[string]string // which test uses a topic

	t    testing.TB
	dir  string
	jars string
	cmd  *exec.Cmd
	done chan error
}

// Keys are what Secure needs, in PEM.
type Keys struct {
	// Authority is the certificate of the authority, and Server the key and the certificate of the server.
	Authority, Server []byte
}

// Start starts a broker that ends with the test. Retention is carried out twice a second.
func Start(t testing.TB, keys Keys) *Broker {
	t.Helper()
	addrs, err := ports.Reserve(3)
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{Addr: addrs[0], Secure: addrs[1], topics: map[string]string{}, t: t, dir: t.TempDir()}
	if b.jars, err = find("kafka"); err != nil {
		t.Fatal(err)
	}
	b.CA = b.file("ca.pem", keys.Authority)
	settings := strings.NewReplacer("PLAIN-ADDR", b.Addr, "SECURE-ADDR", b.Secure, "CONTROLLER-ADDR", addrs[2],
		"LOGS", filepath.Join(b.dir, "logs"), "KEYS", b.file("server.pem", keys.Server), "USER", User, "PASSWORD", Password).Replace(settings)
	b.file("server.properties", []byte(settings))
	b.file("log4j2.yaml", []byte(logging))
	var id [16]byte
	_, _ = rand.Read(id[:])
	id[0] &= 0x7f // an id that begins with a minus would be taken for a flag
	out, err := b.java("-Xmx128m", "-cp", b.jars+"/*", "kafka.tools.StorageTool", "format", "-t", base64.RawURLEncoding.EncodeToString(id[:]),
		"-c", "server.properties", "--add-scram", "SCRAM-SHA-512=[name="+User+",password="+Password+"]").CombinedOutput()
	if err != nil {
		t.Fatalf("formatting the folder of Kafka: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		b.Kill()
		if text, err := os.ReadFile(filepath.Join(b.dir, "log")); t.Failed() && err == nil {
			t.Logf("the log of Kafka ends with:\n%s", text[max(0, len(text)-2000):])
		}
	})
	b.Restart()
	return b
}

// Own has a test fail that uses the name of a topic which another one uses: they run at the same time.
func (b *Broker) Own(t testing.TB, topic string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if owner, ok := b.topics[topic]; ok && owner != t.Name() {
		t.Fatalf("topic %s is also that of %s: each test needs names of its own", topic, owner)
	}
	b.topics[topic] = t.Name()
}

// Logs returns the folder of the server's partitions.
func (b *Broker) Logs() string { return filepath.Join(b.dir, "logs") }

const settings = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@CONTROLLER-ADDR
listeners=PLAINTEXT://PLAIN-ADDR,SECURE://SECURE-ADDR,CONTROLLER://CONTROLLER-ADDR
advertised.listeners=PLAINTEXT://PLAIN-ADDR,SECURE://SECURE-ADDR
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
controller.listener.names=CONTROLLER
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=KEYS
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_USER="PASSWORD";
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
log.dirs=LOGS
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=500
log.initial.task.delay.ms=500
delete.topic.enable=true
`

const logging = `Configuration:
  Appenders:
    Console:
      name: console
  Loggers:
    Root:
      level: warn
      AppenderRef:
        ref: console
`

// file writes a file into the folder of the broker.
func (b *Broker) file(name string, text []byte) string {
	b.t.Helper()
	name = filepath.Join(b.dir, name)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return name
}

func (b *Broker) java(args ...string) *exec.Cmd {
	cmd := exec.Command("java", args...)
	cmd.Dir = b.dir
	return cmd
}

// Kill ends the server as a power cut ends a process, if it runs.
func (b *Broker) Kill() {
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Kill()
	<-b.done
	b.cmd = nil
}

// Restart starts the server, which must not run, and waits until it listens.
func (b *Broker) Restart() {
	b.t.Helper()
	log, err := os.OpenFile(filepath.Join(b.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer log.Close()
	b.cmd = b.java("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.configurationFile=log4j2.yaml",
		"-cp", b.jars+"/*", "kafka.Kafka", "server.properties")
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	cmd, done := b.cmd, make(chan error, 1)
	b.done = done
	go func() { done <- cmd.Wait() }()
	for _, addr := range []string{b.Addr, b.Secure} {
		for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err == nil {
				c.Close()
				break
			}
			select {
			case err = <-done:
				done <- err
				b.t.Fatalf("Kafka ended: %v", err)
			default:
			}
			if time.Since(began) > 4*time.Minute {
				b.t.Fatal(errors.Join(errors.New("the broker does not listen"), err))
			}
		}
	}
}

// find returns the path of a program below bin/test of the repository.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "bin", "test", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("bin/test/%s is missing; install it by .ci/tools", name)
}
