// Package notify tells operators' endpoints what happens to requests, by signed webhooks (https://www.standardwebhooks.com):
// somebody is asked, has answered, or has not in time.
//
// A delivery is a row that the store writes in the transaction of the change, for each endpoint that takes the app and the
// type. Servers deliver it with a lease: at least once, by one of them at a time, with the same webhook-id each time. Bodies
// hold ids, names and the link, which is no capability; no content and no secret. It must not know SQL, HTTP routes or
// Temporal.
package notify
