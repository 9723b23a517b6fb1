// Package words makes filters of LogsQL for lines that contain a text.
package words
