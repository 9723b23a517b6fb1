package router

import (
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/shaledb/shale/internal/memcache/hash"
)

// Pool is a pool of servers, as the configuration of twemproxy has it.
type Pool struct {
	Name string
	// Listen is HOST:PORT or a path, which gets the permissions Perm unless they are 0.
	Listen string
	Perm   fs.FileMode
	Hash   string
	// Tag is hash_tag, of two characters, or empty.
	Tag          string
	Distribution string
	// Timeout bounds the time of a connection to a server and of a response; 0: without bound.
	Timeout time.Duration
	Backlog int
	// KeepAlive, Preconnect and Eject are tcpkeepalive, preconnect and auto_eject_hosts.
	KeepAlive, Preconnect, Eject bool
	Connections                  int
	RetryTimeout                 time.Duration
	FailureLimit                 int
	Servers                      []Server
}

// Server is a server of a pool.
type Server struct {
	// Name places keys: the alias, or the address. Addr is HOST:PORT or a path.
	Name, Addr string
	Weight     int
	// Display is how counters name it: HOST:PORT:WEIGHT, as it is in the file.
	Display string
}

// ParseConfig reads the pools of a configuration of twemproxy. What twemproxy refuses is refused.
func ParseConfig(text []byte) ([]Pool, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, fmt.Errorf("expected pools in one YAML document")
	}
	entries, err := mapping(file.Docs[0].Body)
	if err != nil {
		return nil, err
	}
	var pools []Pool
	for _, e := range entries {
		p, err := parsePool(scalar(e.Key), e.Value)
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", scalar(e.Key), err)
		}
		for _, other := range pools {
			if other.Listen == p.Listen {
				return nil, fmt.Errorf("pools %s and %s listen on the same address, %s", other.Name, p.Name, p.Listen)
			}
		}
		pools = append(pools, p)
	}
	if len(pools) == 0 {
		return nil, fmt.Errorf("no pools")
	}
	return pools, nil
}

func mapping(n ast.Node) ([]*ast.MappingValueNode, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	}
	return nil, fmt.Errorf("line %d: expected keys and values", line(n))
}

func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// scalar returns a value as it is written, without its quotes.
func scalar(n ast.Node) string {
	switch n := n.(type) {
	case nil:
		return ""
	case *ast.StringNode:
		return n.Value
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		return ""
	}
	if n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// usualPool has the defaults of twemproxy.
func usualPool(name string) Pool {
	return Pool{Name: name, Hash: "fnv1a_64", Distribution: "ketama", Backlog: 512, Connections: 1, RetryTimeout: 30 * time.Second, FailureLimit: 2}
}

func parsePool(name string, n ast.Node) (Pool, error) {
	p := usualPool(name)
	entries, err := mapping(n)
	if err != nil {
		return p, err
	}
	for _, e := range entries {
		key := scalar(e.Key)
		if key == "servers" {
			err = p.addServers(e.Value)
		} else {
			err = p.set(key, scalar(e.Value))
		}
		if err != nil {
			return p, fmt.Errorf("line %d: %s: %w", line(e.Key), key, err)
		}
	}
	switch {
	case p.Listen == "":
		return p, fmt.Errorf("listen is missing")
	case len(p.Servers) == 0:
		return p, fmt.Errorf("it has no servers")
	}
	slices.SortStableFunc(p.Servers, func(a, b Server) int { return hash.LessTwemproxy(a.Name, b.Name) })
	for i, s := range p.Servers[1:] {
		if s.Name == p.Servers[i].Name {
			return p, fmt.Errorf("two servers have the name %s", s.Name)
		}
	}
	_, err = p.spread()
	return p, err
}

// spread returns where keys of the pool belong.
func (p *Pool) spread() (*hash.Twemproxy, error) {
	servers := make([]hash.Server, len(p.Servers))
	for i, s := range p.Servers {
		servers[i] = hash.Server{Name: s.Name, Weight: s.Weight}
	}
	return hash.NewTwemproxy(p.Distribution, p.Hash, p.Tag, servers)
}

// set sets a key. client_connections has no effect in twemproxy either, which overwrites it.
func (p *Pool) set(key, value string) (err error) {
	millis := func(d *time.Duration) error {
		n, err := count(value)
		*d = time.Duration(n) * time.Millisecond
		return err
	}
	switch key {
	case "listen":
		return p.listen(value)
	case "hash":
		p.Hash = value
	case "hash_tag":
		if p.Tag = value; len(value) != 2 {
			return fmt.Errorf("expected two characters, got %q", value)
		}
	case "distribution":
		p.Distribution = value
	case "timeout":
		return millis(&p.Timeout)
	case "backlog":
		p.Backlog, err = count(value)
	case "client_connections":
		_, err = count(value)
	case "redis":
		var redis bool
		if redis, err = truth(value); redis {
			return fmt.Errorf("pools of Redis are not served: expected false")
		}
	case "redis_auth", "redis_db":
		return fmt.Errorf("pools of Redis are not served")
	case "tcpkeepalive":
		p.KeepAlive, err = truth(value)
	case "reuseport":
		_, err = truth(value)
	case "preconnect":
		p.Preconnect, err = truth(value)
	case "auto_eject_hosts":
		p.Eject, err = truth(value)
	case "server_connections":
		if p.Connections, err = count(value); err == nil && (p.Connections == 0 || p.Connections > 1000) {
			return fmt.Errorf("expected 1 to 1000, got %s", value)
		}
	case "server_retry_timeout":
		return millis(&p.RetryTimeout)
	case "server_failure_limit":
		p.FailureLimit, err = count(value)
	default:
		return fmt.Errorf("twemproxy has no such directive")
	}
	return err
}

func count(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("expected a number, got %q", text)
	}
	return int(n), nil
}

func truth(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, fmt.Errorf("expected true or false, got %q", text)
	}
	return text == "true", nil
}

// listen reads HOST:PORT, or a path with permissions.
func (p *Pool) listen(value string) error {
	if strings.HasPrefix(value, "/") {
		path, perm, ok := strings.Cut(value, " ")
		p.Listen = path
		if ok {
			n, err := strconv.ParseUint(strings.TrimSpace(perm), 8, 32)
			if err != nil || n > 0o777 {
				return fmt.Errorf("expected permissions such as 0600, got %q", perm)
			}
			p.Perm = fs.FileMode(n)
		}
		return nil
	}
	at := strings.LastIndexByte(value, ':')
	if at < 0 {
		return fmt.Errorf("expected HOST:PORT or a path, got %q", value)
	}
	if port, err := count(value[at+1:]); err != nil || port == 0 || port > 65535 {
		return fmt.Errorf("expected a port, got %q", value[at+1:])
	}
	p.Listen = net.JoinHostPort(strings.Trim(value[:at], "[]"), value[at+1:])
	return nil
}

func (p *Pool) addServers(n ast.Node) error {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return fmt.Errorf("expected a list")
	}
	for _, item := range list.Values {
		s, err := parseServer(scalar(item))
		if err != nil {
			return fmt.Errorf("line %d: %w", line(item), err)
		}
		p.Servers = append(p.Servers, s)
	}
	return nil
}

// parseServer reads HOST:PORT:WEIGHT or PATH:WEIGHT, and an alias.
func parseServer(text string) (s Server, err error) {
	bad := fmt.Errorf("expected HOST:PORT:WEIGHT and perhaps a name, got %q", text)
	rest := text
	if at := strings.LastIndexByte(text, ' '); at >= 0 {
		rest, s.Name = strings.TrimRight(text[:at], " "), text[at+1:]
	}
	s.Display = rest
	at := strings.LastIndexByte(rest, ':')
	if at <= 0 {
		return s, bad
	}
	if s.Weight, err = count(rest[at+1:]); err != nil || s.Weight == 0 || s.Weight > 1_000_000 {
		return s, fmt.Errorf("expected a weight of 1 to 1,000,000 in %q", text)
	}
	s.Addr = rest[:at]
	host := s.Addr
	if !strings.HasPrefix(text, "/") {
		at = strings.LastIndexByte(s.Addr, ':')
		if at <= 0 {
			return s, bad
		}
		port, err := count(s.Addr[at+1:])
		if err != nil || port == 0 || port > 65535 {
			return s, fmt.Errorf("expected a port in %q", text)
		}
		if host = s.Addr[:at]; port != 11211 {
			host = s.Addr
		}
		s.Addr = net.JoinHostPort(strings.Trim(s.Addr[:at], "[]"), s.Addr[at+1:])
	}
	if s.Name == "" {
		s.Name = host
	}
	return s, nil
}
