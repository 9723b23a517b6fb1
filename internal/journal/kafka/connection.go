package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/roots"
)

// Connection says how to reach the brokers. Files are read when a client is made.
type Connection struct {
	// Brokers are addresses HOST:PORT. Some of a cluster are enough: they name the others.
	Brokers []string
	// ClientID names this program in the logs and quotas of brokers.
	ClientID string
	// Log is told of requests that clients repeat, such as those to brokers that do not answer; nil: it is not.
	Log *slog.Logger

	TLS bool
	// CAFile has the authorities of brokers in PEM; empty: those of the system.
	CAFile string
	// CertFile and KeyFile prove this program to brokers; empty: it has no certificate.
	CertFile, KeyFile string

	// Mechanism is that of SASL: [Plain], [SCRAM256], [SCRAM512]; empty: there is no login.
	Mechanism string
	User      string
	// PasswordFile has the password in its first line.
	PasswordFile string
}

// The mechanisms of SASL.
const (
	Plain    = "plain"
	SCRAM256 = "scram-sha-256"
	SCRAM512 = "scram-sha-512"
)

// The settings, as errors name them.
const (
	brokersSetting   = "kafka.brokers"
	tlsSetting       = "kafka.tls"
	caSetting        = "kafka.tls-ca-file"
	certSetting      = "kafka.tls-cert-file"
	keySetting       = "kafka.tls-key-file"
	mechanismSetting = "kafka.sasl-mechanism"
	userSetting      = "kafka.sasl-user"
	passwordSetting  = "kafka.sasl-password-file"
)

// SettingError says what is wrong with a setting. It is of class invalid.
type SettingError struct{ Setting, Text string }

// Error returns the text.
func (e *SettingError) Error() string { return e.Setting + ": " + e.Text }

// Unwrap returns the class.
func (e *SettingError) Unwrap() error { return model.ErrInvalid }

// Check refuses settings that contradict each other. It reads no file.
func (c *Connection) Check() error {
	wrong := func(setting, format string, args ...any) error {
		return &SettingError{setting, fmt.Sprintf(format, args...)}
	}
	if len(c.Brokers) == 0 {
		return wrong(brokersSetting, "must name at least one broker, such as 127.0.0.1:9092")
	}
	for _, b := range c.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			return wrong(brokersSetting, "%q is not an address; write HOST:PORT, and separate brokers by commas", b)
		}
	}
	for _, f := range [...][2]string{{caSetting, c.CAFile}, {certSetting, c.CertFile}, {keySetting, c.KeyFile}} {
		if f[1] != "" && !c.TLS {
			return wrong(f[0], "%s would not be used: %s is off", f[1], tlsSetting)
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return wrong(keySetting, "%s and %s must be set together", certSetting, keySetting)
	}
	switch c.Mechanism {
	case "":
		if c.User != "" {
			return wrong(userSetting, "%s would not be used: %s is empty", c.User, mechanismSetting)
		}
		if c.PasswordFile != "" {
			return wrong(passwordSetting, "%s would not be used: %s is empty", c.PasswordFile, mechanismSetting)
		}
	case Plain, SCRAM256, SCRAM512:
		if c.User == "" {
			return wrong(userSetting, "must be set with %s", mechanismSetting)
		}
		if c.PasswordFile == "" {
			return wrong(passwordSetting, "must be set with %s", mechanismSetting)
		}
	default:
		return wrong(mechanismSetting, "%q is unknown; there are %s, %s and %s", c.Mechanism, Plain, SCRAM256, SCRAM512)
	}
	return nil
}

// Waits for brokers. A broker that was killed answers again after seconds; one whose machine has gone never
// answers, and its partitions have other leaders after a few seconds.
const (
	dialTimeout = 5 * time.Second
	// askTimeout bounds a question to the cluster with its repetitions.
	askTimeout = 30 * time.Second
)

// client returns a client. It connects to no broker before the first request.
func (c *Connection) client(more ...kgo.Opt) (*kgo.Client, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.DialTimeout(dialTimeout),
		kgo.RetryTimeout(askTimeout),
		kgo.DisableClientMetrics(), // brokers need not know what this program does
	}
	if c.Log != nil {
		options = append(options, kgo.WithLogger(&clientLog{log: c.Log, said: map[string]time.Time{}}))
	}
	if c.ClientID != "" {
		options = append(options, kgo.ClientID(c.ClientID))
	}
	if c.TLS {
		t, err := c.tls()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(t))
	}
	if c.Mechanism != "" {
		m, err := c.login()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(m))
	}
	cl, err := kgo.NewClient(append(options, more...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w: %w", model.ErrInvalid, err)
	}
	return cl, nil
}

func (c *Connection) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		var err error
		if t.RootCAs, err = roots.File(c.CAFile); err != nil {
			return nil, &SettingError{caSetting, err.Error()}
		}
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, &SettingError{certSetting, err.Error()}
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

func (c *Connection) login() (sasl.Mechanism, error) {
	text, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return nil, &SettingError{passwordSetting, err.Error()}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	password := strings.TrimSuffix(line, "\r")
	if password == "" {
		return nil, &SettingError{passwordSetting, c.PasswordFile + " has no password in its first line"}
	}
	switch c.Mechanism {
	case Plain:
		return plain.Auth{User: c.User, Pass: password}.AsMechanism(), nil
	case SCRAM256:
		return scram.Auth{User: c.User, Pass: password}.AsSha256Mechanism(), nil
	case SCRAM512:
		return scram.Auth{User: c.User, Pass: password}.AsSha512Mechanism(), nil
	}
	return nil, errors.New("BUG: the mechanism was not checked")
}
