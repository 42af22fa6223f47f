// Package bench measures hermesd beside what it is compared with, in one run, since machines are noisy: `make bench` prints
// it, `make bars` holds it against the table of package bars.
package bench
