// Package renders measures servers of Graphite's render API that hold equal points: a dashboard, a sum of
// many series, and a year of one series.
//
// It owns the points, how they get to a server (lines of the plain protocol, or whisper files), the requests,
// the comparison of responses and the table. It knows servers by their URLs and processes only. The first
// server's responses are what others are compared with.
package renders
