package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The mistakes of settings that are of the wrong kind.
var (
	errNotOne  = errors.New("must be one value, not a list or a map")
	errNotList = errors.New("must be a list, not a map")
	// errNotOfTenant is that of a setting in a file of tenants.
	errNotOfTenant = errors.New("is a setting of the server, which no tenant can have of its own")
)

// yaml reads the settings of one YAML document. It walks the syntax tree and does not decode into the struct:
// the text of a value must go through the parser of the flags, and every mistake needs its line.
func (l *loader) yaml(path string, data []byte) {
	if body := l.document(path, data); body != nil {
		l.mapping(path, "", body)
	}
}

// document returns the body of a YAML document, or nil if it is empty or wrong.
func (l *loader) document(path string, data []byte) ast.Node {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) && e.GetToken() != nil {
			err = fmt.Errorf("%s: %s", position(path, e.GetToken()), e.GetMessage())
		} else {
			err = fmt.Errorf("%s: %w", path, err)
		}
		l.mistakes = append(l.mistakes, err)
		return nil
	}
	if len(f.Docs) > 1 {
		l.mistakes = append(l.mistakes, fmt.Errorf("%s: expected one document, got a second one", position(path, f.Docs[1].GetToken())))
		return nil
	}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil {
		return nil // an empty file changes nothing
	}
	return f.Docs[0].Body
}

func position(path string, t *token.Token) string {
	if t == nil || t.Position == nil {
		return path
	}
	return fmt.Sprintf("%s:%d:%d", path, t.Position.Line, t.Position.Column)
}

// mapping walks the keys below a prefix such as "query.".
func (l *loader) mapping(path, prefix string, n ast.Node) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	case *ast.CommentGroupNode:
		return
	default:
		what := cmp.Or(l.inside, "the file")
		if prefix != "" {
			what = prefix[:len(prefix)-1]
		}
		l.mistakes = append(l.mistakes, fmt.Errorf("%s: %s must hold settings, as `name: value`", position(path, n.GetToken()), what))
		return
	}
	for _, v := range values {
		key := v.Key.GetToken()
		name := prefix + key.Value
		switch {
		case l.find(name) != nil && l.inside != "" && !l.find(name).ofTenant:
			l.mistake(position(path, key), name, errNotOfTenant)
		case l.find(name) != nil:
			l.value(path, l.find(name), v.Value)
		case l.isGroup(name):
			l.mapping(path, name+".", v.Value)
		default:
			l.unknown(position(path, key), "setting", name, func(s *Setting) string { return s.Name })
		}
	}
}

func (l *loader) isGroup(name string) bool {
	for i := range l.settings {
		if s := l.settings[i].Name; len(s) > len(name) && s[:len(name)] == name && s[len(name)] == '.' {
			return true
		}
	}
	return false
}

func (l *loader) value(path string, s *Setting, n ast.Node) {
	at := position(path, n.GetToken())
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.LiteralNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		text := n.GetToken().Value
		if lit, ok := n.(*ast.LiteralNode); ok {
			text = lit.Value.Value
		}
		l.set(s, text, at)
	case *ast.NullNode:
		l.mistake(at, s.Name, errors.New(`has no value; leave the line out for the default, or write "" for an empty one`))
	case *ast.SequenceNode:
		if !s.isList(&l.config) {
			l.mistake(at, s.Name, errNotOne)
			return
		}
		// The parser of the setting reads JSON, too. Its errors name the item.
		var list any
		err := yaml.NodeToValue(n, &list)
		if err != nil {
			l.mistake(at, s.Name, err)
			return
		}
		text, err := json.Marshal(list)
		if err != nil {
			l.mistake(at, s.Name, err)
			return
		}
		l.set(s, string(text), at)
	default:
		if s.isList(&l.config) {
			l.mistake(at, s.Name, errNotList)
			return
		}
		l.mistake(at, s.Name, errNotOne)
	}
}
