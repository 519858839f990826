package auth

import (
	"errors"
	"time"
)

// Person is somebody who has signed in. Two are the same if issuer and subject are, byte for byte, whatever their names.
type Person struct {
	Issuer  string
	Subject string
	// Name is shown to people; it may be empty and may change.
	Name string
}

// PersonSession is a browser in which a person has signed in. Its id is the browser's secret; stores know its hash alone.
type PersonSession struct {
	Person

	Created time.Time
	// Expires is when the person signs in again, however busy the session is.
	Expires time.Time
}

var (
	// ErrNoSession says that there is no such session, or that it is over.
	ErrNoSession = errors.New("auth: no such session")
	// ErrSpent says that the one use was had before.
	ErrSpent = errors.New("auth: used before")
)
