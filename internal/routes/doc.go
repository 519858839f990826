// Package routes reads out of the source which routes the HTTP side mounts, so that tests can be about all of them: a route that
// nobody thought of is in none of the lists that people write. Tests alone use it.
package routes
