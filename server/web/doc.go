// Package web is what every part of the HTTP side shares: request ids, the access log, panic recovery, body limits, JSON
// and error answers, security headers, the origin rule, cookies and CSRF tokens.
//
// It knows neither who is calling (package signin) nor any route. Nothing here logs or echoes a query string, a header
// value or a body: codes and states travel in them.
package web
