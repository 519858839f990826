// Package datafile owns the SQLite file as a thing on disk: who may open it (a lock), how it comes to exist (whole or
// not at all), and which server version it belongs to.
//
// It must not know what the tables mean. Package embedded calls it before the server opens the file.
package datafile
