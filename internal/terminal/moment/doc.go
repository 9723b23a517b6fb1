// Package moment reads points of time as people write them on a command line, and writes them in a form that
// it reads. It knows local times that clocks show twice or never.
package moment
