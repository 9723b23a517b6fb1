package config

import (
	"errors"
	"strings"

	"github.com/shaledb/shale/internal/journal/kafka"
)

// Kafka names the topic that carries writes between roles, and says how to reach it.
type Kafka struct {
	JournalVersion int    `name:"journal-version" type:"count" default:"4" placeholder:"N" min:"1" max:"4" help:"Version of what processes write in Kafka and in the bucket. While older programs run, set the newest version that all of them know: docs/scale-out.md has the order of an upgrade. 1 has no deletions, 2 neither leaders of partitions nor topics that follow others, and 3 neither trees of Graphite names nor rollups."`
	Brokers        string `name:"kafka.brokers" default:"" placeholder:"HOST:PORT,..." help:"Brokers of the Kafka cluster that carries writes between roles, separated by commas. Some of them are enough: they name the others."`
	Topic          string `name:"kafka.topic" default:"shale" placeholder:"NAME" help:"Topic that carries writes. 'shale kafka create' makes it with the right settings."`
	TLS            Switch `name:"kafka.tls" default:"off" placeholder:"on|off" help:"Use TLS for all connections to Kafka."`
	TLSCA          string `name:"kafka.tls-ca-file" default:"" placeholder:"FILE" help:"PEM file with the certificate authorities that may sign the certificates of brokers. Empty: those of the system."`
	TLSCert        string `name:"kafka.tls-cert-file" default:"" placeholder:"FILE" help:"PEM file with the client certificate that Shale presents to brokers. Empty: none."`
	TLSKey         string `name:"kafka.tls-key-file" default:"" placeholder:"FILE" help:"Private key in PEM of kafka.tls-cert-file."`
	Mechanism      string `name:"kafka.sasl-mechanism" default:"" placeholder:"NAME" help:"How Shale logs in to brokers: plain, scram-sha-256 or scram-sha-512. plain sends the password, so use TLS with it. Empty: there is no login."`
	User           string `name:"kafka.sasl-user" default:"" placeholder:"NAME" help:"User for kafka.sasl-mechanism."`
	Password       string `name:"kafka.sasl-password-file" default:"" placeholder:"FILE" help:"File whose first line is the password of kafka.sasl-user."`
}

// Connection returns how to reach the brokers.
func (k *Kafka) Connection() kafka.Connection {
	c := kafka.Connection{
		ClientID: "shale", TLS: k.TLS.On(), CAFile: k.TLSCA, CertFile: k.TLSCert, KeyFile: k.TLSKey,
		Mechanism: k.Mechanism, User: k.User, PasswordFile: k.Password,
	}
	for b := range strings.SplitSeq(k.Brokers, ",") {
		if b = strings.TrimSpace(b); b != "" {
			c.Brokers = append(c.Brokers, b)
		}
	}
	return c
}

// kafkaRules returns the rules for the settings of Kafka. Without brokers there is no Kafka, and the other
// settings must make sense all the same.
func kafkaRules() (rules []rule) {
	for _, s := range Settings() {
		if !strings.HasPrefix(s.Name, "kafka.") || s.Name == partitionsSetting || s.Name == groupSetting {
			continue
		}
		rules = append(rules, rule{s.Name, func(c *Config) error {
			if s.Name == "kafka.topic" {
				return notEmpty(c.Kafka.Topic)
			}
			connection := c.Kafka.Connection()
			if c.Kafka.Brokers == "" {
				connection.Brokers = []string{"localhost:9092"}
			}
			var wrong *kafka.SettingError
			if errors.As(connection.Check(), &wrong) && wrong.Setting == s.Name {
				return errors.New(wrong.Text)
			}
			return nil
		}})
	}
	return rules
}
