// Package carbonconf reads the configuration files of carbon: their sections and keys with the lines that
// they are on, as Python's configparser reads them. It also has them read
// again when they change.
//
// What sections and keys mean is for the packages that obey them.
package carbonconf
