// Package docscheck has no code of its own: its tests compare the documentation with the program. Named tests exist,
// links lead somewhere, the table of environment variables is what the binaries say, every direct dependency has its
// reason, quoted log messages are those of the code, and the commands of the README work.
package docscheck
