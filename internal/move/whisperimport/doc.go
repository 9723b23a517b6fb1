// Package whisperimport sends the points of whisper files to a server, and reads them back. It decodes the
// files of whisper and the compressed ones of go-carbon, makes names of their paths, and leaves out what
// whisper would not show.
//
// The finest archive of a file becomes points. A slot of a coarser archive becomes a rollup, a row that
// [policy.Rollup] gives its time, unless the policy of the file makes the same value of finer points. So a
// server whose policy is that of the file shows what whisper shows, in every archive.
//
// It never writes to the files, and never opens the data folder of a server.
package whisperimport
