// Package policy says how the points of each Graphite name are laid out in time: in which steps, for how
// long, and how coarser steps are made of finer ones. The files storage-schemas.conf and
// storage-aggregation.conf of carbon say so, and are read as they are.
//
// Carbon applies them when a name is first written. Here they apply when points are read: rows are stored as
// they came, and [Policy.Slots] lays them on the grid that whisper would have. So a change of the files
// changes the past, too.
//
// A row may be a rollup: the value of a coarse slot whose finer points are gone. Imports of whisper files
// write them. [Rollup] defines their times. The package never does I/O except for reading its two files.
package policy
