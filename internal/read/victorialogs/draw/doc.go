// Package draw says how VictoriaLogs draws a sample of lines. Time is divided into windows, which are the
// same for all ranges of about one length. In each window VictoriaLogs sends the lines whose hash is below a
// bound: all of a small window, and of others a half, a quarter and so on. The hash is of the text, the time
// and the stream. So a window has the same sample at each request until its lines change.
package draw
