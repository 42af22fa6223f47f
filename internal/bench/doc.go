// Package bench measures hermesd beside what it is compared with, in one run, since machines are noisy: `make bench`.
package bench
