// Package pace says when each part of a load is due, and which times its samples have.
package pace
