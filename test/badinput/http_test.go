//go:build e2e

package badinput

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// send posts a body. Headers are name and value in turn; later ones replace earlier ones, and an empty value takes a
// header away.
func (s *server) send(path string, body []byte, headers ...string) (status int, header http.Header, text string) {
	req, err := http.NewRequest(http.MethodPost, "http://"+s.httpAddr+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err.Error()
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, resp.Header, err.Error()
	}
	return resp.StatusCode, resp.Header, string(all)
}

// protobufHeaders are those of remote write 1.0 and of remote read, and whatever is added to them.
func protobufHeaders(more []string) []string {
	return append([]string{"Content-Type", "application/x-protobuf", "Content-Encoding", "snappy"}, more...)
}

// post sends a body to remote write, with headers beyond the usual ones.
func (s *server) post(headers []string, body []byte) (int, string) {
	status, _, text := s.send("/api/v1/write", body, protobufHeaders(headers)...)
	return status, text
}

// exchange sends the bytes of any number of requests and reads the answers that come, until the server closes the
// connection or nothing comes for patience. The sender goes on while answers are read.
func (s *server) exchange(send io.Reader, patience time.Duration) (answer, text string) {
	conn, err := net.Dial("tcp", s.httpAddr)
	if err != nil {
		return "no connection", err.Error()
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(struct{ io.Writer }{conn}, send) }()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	in := bufio.NewReader(conn)
	var answers, texts []string
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			if len(answers) > 0 {
				break
			}
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				return "none", ""
			}
			return "closed", ""
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		answers = append(answers, fmt.Sprint(resp.StatusCode))
		texts = append(texts, errorText(string(body)))
		if resp.Close {
			break
		}
	}
	return strings.Join(answers, ", "), strings.Join(texts, " / ")
}

// errorText takes the text of an error out of its JSON.
func errorText(body string) string {
	var a struct{ Status, ErrorType, Error string }
	if json.Unmarshal([]byte(body), &a) != nil || a.Status == "" {
		return body
	}
	if a.Status == "success" {
		return body
	}
	return a.ErrorType + ": " + a.Error
}

// zeros is a reader of n bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
