// Package repair sets damaged files aside. It owns the folder set-aside of a data folder: damaged files lie
// there, each with a note that says where the file was, why it was moved, and which rows queries lack since.
//
// It never deletes or changes a damaged file, and it does not decide what is damaged: the rooms do.
package repair
