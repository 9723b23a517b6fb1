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

// send posts a body. Headers are name and value in turn; later ones replace earlier ones, and an empty value
// removes a header.
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

// protobufHeaders returns the headers of remote write 1.0 and of remote read, with more added.
func protobufHeaders(more []string) []string {
	return append([]string{"Content-Type", "application/x-protobuf", "Content-Encoding", "snappy"}, more...)
}

// post sends a body to remote write, with headers in addition to the usual ones.
func (s *server) post(headers []string, body []byte) (int, string) {
	status, _, text := s.send("/api/v1/write", body, protobufHeaders(headers)...)
	return status, text
}

// exchange sends the bytes of any number of requests and reads responses until the server closes the
// connection or patience is over. It keeps sending while it reads.
func (s *server) exchange(send io.Reader, patience time.Duration) (outcome, text string) {
	conn, err := net.Dial("tcp", s.httpAddr)
	if err != nil {
		return "no connection", err.Error()
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(struct{ io.Writer }{conn}, send) }()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	in := bufio.NewReader(conn)
	var statuses, texts []string
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			if len(statuses) > 0 {
				break
			}
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				return "no response", ""
			}
			return "closed", ""
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		statuses = append(statuses, fmt.Sprint(resp.StatusCode))
		texts = append(texts, errorText(string(body)))
		if resp.Close {
			break
		}
	}
	return strings.Join(statuses, ", "), strings.Join(texts, " / ")
}

// errorText returns the text of an error in the JSON of the Prometheus API, or the body.
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

// zeros returns a reader of n zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
