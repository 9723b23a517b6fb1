package client

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Authorize sends the token in a file with every request. An empty name sends none.
func (s *Server) Authorize(file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return invalid(err)
	}
	token := string(bytes.TrimSpace(text))
	if token == "" || strings.ContainsAny(token, " \r\n") {
		return invalid(fmt.Errorf("expected one token in %s", file))
	}
	s.Header.Set("Authorization", "Bearer "+token)
	return nil
}
