// Package inputs keeps what is wanted of a person beyond a login, until the person has done it: what a server asks for (MCP
// elicitation), and the approval of a call.
//
// It owns the sealing of questions and answers. The request row is the same as a login's: it waits, expires, is cancelled and wakes its run in the
// same way; an accepted, or declined, question ends it as granted, because the call is to be made again with the answer. A
// question that knows no answers ([auth.Question.Plain]) ends as denied when it is declined: the call is not made again. So
// does a rejected approval.
//
// It must not fetch a URL of a question, and must not show one to anybody but the asked person. Activities seal and resume,
// the server's connect page shows and answers.
package inputs
