package kafka

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/auth/certstest"
	"github.com/shaledb/shale/internal/model"
)

// Settings that contradict each other are refused by the name of one of them.
func TestConnectionCheck(t *testing.T) {
	good := Connection{
		Brokers: []string{"a:9092", "[::1]:9093"}, TLS: true, CAFile: "ca", CertFile: "cert", KeyFile: "key", Mechanism: SCRAM512, User: "me", PasswordFile: "pw",
	}
	for _, test := range []struct {
		change  func(c *Connection)
		setting string // of the error; empty: there is none
		says    string
	}{
		{func(c *Connection) {}, "", ""},
		{func(c *Connection) { *c = Connection{Brokers: c.Brokers} }, "", ""},
		{func(c *Connection) { c.Brokers = nil }, brokersSetting, "at least one broker"},
		{func(c *Connection) { c.Brokers = []string{"a:1", "kafka"} }, brokersSetting, `"kafka" is not an address`},
		{func(c *Connection) { c.TLS = false }, caSetting, "kafka.tls is off"},
		{func(c *Connection) { c.TLS, c.CAFile = false, "" }, certSetting, "kafka.tls is off"},
		{func(c *Connection) { c.TLS, c.CAFile, c.CertFile = false, "", "" }, keySetting, "kafka.tls is off"},
		{func(c *Connection) { c.KeyFile = "" }, keySetting, "together"},
		{func(c *Connection) { c.CertFile = "" }, keySetting, "together"},
		{func(c *Connection) { c.Mechanism = "" }, userSetting, "kafka.sasl-mechanism is empty"},
		{func(c *Connection) { c.Mechanism, c.User = "", "" }, passwordSetting, "kafka.sasl-mechanism is empty"},
		{func(c *Connection) { c.User = "" }, userSetting, "must be set with kafka.sasl-mechanism"},
		{func(c *Connection) { c.PasswordFile = "" }, passwordSetting, "must be set with kafka.sasl-mechanism"},
		{func(c *Connection) { c.Mechanism = "gssapi" }, mechanismSetting, `"gssapi" is unknown`},
	} {
		c := good
		test.change(&c)
		err := c.Check()
		if test.setting == "" {
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		var wrong *SettingError
		if !errors.As(err, &wrong) || wrong.Setting != test.setting || !strings.Contains(wrong.Text, test.says) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%+v: got %v, expected %s: %s", c, err, test.setting, test.says)
		}
	}
}

// Files that cannot be used are refused before a broker is asked.
func TestConnectionFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return certstest.File(t, dir, name, []byte(text)) }
	pair := certstest.New(t, "authority").Client(t, "shale")
	for _, test := range []struct {
		connection Connection
		says       string // empty: a client is made
	}{
		{Connection{TLS: true, CAFile: filepath.Join(dir, "none")}, "kafka.tls-ca-file: open"},
		{Connection{TLS: true, CAFile: file("text", "text")}, "has no certificate in PEM"},
		{Connection{TLS: true, CertFile: file("cert", string(pair.Cert)), KeyFile: file("bad", "text")}, "kafka.tls-cert-file: tls"},
		{Connection{TLS: true, CertFile: file("cert", string(pair.Cert)), KeyFile: file("key", string(pair.Key))}, ""},
		{Connection{Mechanism: Plain, User: "me", PasswordFile: filepath.Join(dir, "none")}, "kafka.sasl-password-file: open"},
		{Connection{Mechanism: Plain, User: "me", PasswordFile: file("empty", "\nsecond\n")}, "has no password in its first line"},
		{Connection{Mechanism: SCRAM256, User: "me", PasswordFile: file("password", "secret\r\n")}, ""},
	} {
		c := test.connection
		c.Brokers = []string{"127.0.0.1:1"}
		cl, err := c.client()
		if err == nil {
			cl.Close()
		}
		if (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || !errors.Is(err, model.ErrInvalid)) {
			t.Errorf("%+v: got %v, expected %q", c, err, test.says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a file was made")
	}
}

// Each setting that loses what was acknowledged is refused, and each that may is warned of.
func TestCheck(t *testing.T) {
	good := func() *Topic {
		return &Topic{Name: "t", Partitions: 16, Replicas: 3, Settings: map[string]string{
			cleanupPolicy: "delete", timestampType: "LogAppendTime", minInsync: "2", retentionMS: "172800000", retentionBytes: "-1", maxMessageBytes: "16777216", uncleanElection: "false",
		}}
	}
	if found := Check(good()); len(found) > 0 {
		t.Fatalf("a good topic: %+v", found)
	}
	set := func(setting, value string) func(*Topic) { return func(t *Topic) { t.Settings[setting] = value } }
	for _, test := range []struct {
		change  func(*Topic)
		setting string
		refused bool
	}{
		{func(t *Topic) { t.Partitions = 12 }, "partitions", true},
		{func(t *Topic) { t.Leaderless = []int32{3} }, "leader", true},
		{func(t *Topic) { t.Behind = []int32{3} }, "in-sync replicas", false},
		{func(t *Topic) { t.Replicas, t.Settings[minInsync] = 1, "1" }, "replicas", false},
		{func(t *Topic) { t.Replicas, t.Settings[minInsync] = 2, "2" }, minInsync, false},
		{set(minInsync, "1"), minInsync, true},
		{set(minInsync, "3"), minInsync, false},
		{set(minInsync, "4"), minInsync, true},
		{set(minInsync, ""), minInsync, true},
		{set(cleanupPolicy, "compact"), cleanupPolicy, true},
		{set(cleanupPolicy, "compact,delete"), cleanupPolicy, true},
		{set(uncleanElection, "true"), uncleanElection, true},
		{set(retentionMS, "86399999"), retentionMS, true},
		{set(retentionMS, "86400000"), retentionMS, false},
		{set(retentionMS, "none"), retentionMS, true},
		{set(retentionBytes, "1000000000"), retentionBytes, false},
		{set(maxMessageBytes, "1000000"), maxMessageBytes, true},
		{set(maxMessageBytes, "1048588"), maxMessageBytes, false},
		{set(maxMessageBytes, "67108865"), maxMessageBytes, false},
		{set(timestampType, "CreateTime"), timestampType, true},
	} {
		topic := good()
		test.change(topic)
		found := Check(topic)
		if len(found) != 1 || found[0].Setting != test.setting || found[0].Refused != test.refused || found[0].Why == "" {
			t.Errorf("%+v: got %+v, expected %s, refused: %v", topic, found, test.setting, test.refused)
		}
	}
	for value, want := range map[string]int32{"2000000": 2000000, "67108864": 64 << 20, "67108865": 64 << 20, "9223372036854775807": 64 << 20, "": defaultMaxMessage} {
		topic := good()
		if topic.Settings[maxMessageBytes] = value; topic.maxMessageBytes() != want {
			t.Errorf("%s = %q: got %d, expected %d", maxMessageBytes, value, topic.maxMessageBytes(), want)
		}
	}
	forever := good()
	forever.Settings[retentionMS] = "-1"
	if found := Check(forever); len(found) > 0 {
		t.Errorf("without an end of retention: %+v", found)
	}
}
