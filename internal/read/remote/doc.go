// Package remote is a source of package read that asks other processes for what they hold and have not
// shipped to the bucket.
//
// It chooses the process that is asked for a journal. It makes sure that nothing lies between what the bucket
// covers and what is held: a query fails rather than leave out rows. It keeps no rows after a query, and does
// not know how holders store rows.
package remote
