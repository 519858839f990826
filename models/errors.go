package models

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind is the sort of an [Error].
type Kind string

// The kinds. What may be repeated is said by [Error.Retryable].
const (
	// KindInvalid: the request is wrong (400, 404, 422 and other 4xx, or refused before it was sent).
	KindInvalid Kind = "invalid_request"
	// KindAuth: the provider's key is missing, wrong or not allowed to do this (401, 403).
	KindAuth Kind = "authentication"
	// KindTimeout: the provider gave up waiting (408).
	KindTimeout Kind = "timeout"
	// KindConflict: 409.
	KindConflict Kind = "conflict"
	// KindRateLimit: 429.
	KindRateLimit Kind = "rate_limit"
	// KindServer: 5xx, or an error in the middle of a stream.
	KindServer Kind = "server"
	// KindNetwork: no answer, or one that broke off.
	KindNetwork Kind = "network"
	// KindUnreadable: an answer of status 2xx that is not what the protocol says.
	KindUnreadable Kind = "unreadable_answer"
	// KindMalformedCall: the model wrote a function call whose arguments are not a JSON object. It is an error and not a
	// call with guessed arguments, because a tool without validation would run with them. Asking again means sampling
	// again: a decision (and a price) that is the caller's, so it is not retryable.
	KindMalformedCall Kind = "malformed_function_call"
)

// Error is a model call that gave no answer. Its text is made of fixed words, the provider's name and the status: never
// of a body, a URL or a header, which can hold prompts and keys. It keeps no cause for the same reason.
type Error struct {
	Kind Kind
	// StatusCode is the HTTP status; 0 where there was none.
	StatusCode int
	// RetryAfter is how long the provider asks to wait; 0 where it says nothing.
	RetryAfter time.Duration
	// Provider is the registry prefix of the provider, for example "gemini".
	Provider string
	// Reason is the provider's own word for the error, if it is one of a fixed list of known words; else empty.
	Reason string
	// Message comes from a fixed vocabulary. Scripted models alone say more: what their script lacks.
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Provider + ": ")
	message := e.Message
	if message == "" {
		message = kindMessage(e.Kind)
	}
	b.WriteString(message)
	var notes []string
	if e.StatusCode != 0 {
		notes = append(notes, fmt.Sprintf("HTTP %d", e.StatusCode))
	}
	if e.Reason != "" {
		notes = append(notes, e.Reason)
	}
	if e.RetryAfter > 0 {
		notes = append(notes, "retry after "+e.RetryAfter.String())
	}
	if len(notes) > 0 {
		b.WriteString(" (" + strings.Join(notes, ", ") + ")")
	}
	return b.String()
}

// Retryable says whether the same call may be made again: after 408, 409, 429, 5xx, a network failure or an unreadable
// answer. Other 4xx and malformed function calls are final.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case KindTimeout, KindConflict, KindRateLimit, KindServer, KindNetwork, KindUnreadable:
		return true
	default:
		return false
	}
}

// StatusError is the error for an answer that is not 2xx. header may be nil; of it only Retry-After and retry-after-ms
// are read, counted from now. reason is kept if it is a known word.
func StatusError(provider string, status int, header http.Header, reason string, now time.Time) *Error {
	reason = knownReason(reason)
	kind := kindOfStatus(status)
	if status == 0 {
		kind = kindOfReason(reason)
	}
	return &Error{
		Kind: kind, StatusCode: status, Provider: provider, Reason: reason,
		Message: kindMessage(kind), RetryAfter: retryAfter(header, now),
	}
}

func kindOfStatus(status int) Kind {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return KindAuth
	case status == http.StatusRequestTimeout:
		return KindTimeout
	case status == http.StatusConflict:
		return KindConflict
	case status == http.StatusTooManyRequests:
		return KindRateLimit
	case status >= 500:
		return KindServer
	default:
		return KindInvalid
	}
}

func kindMessage(kind Kind) string {
	switch kind {
	case KindInvalid:
		return "request not accepted"
	case KindAuth:
		return "key not accepted"
	case KindTimeout:
		return "provider timed out"
	case KindConflict:
		return "conflict"
	case KindRateLimit:
		return "rate limited"
	case KindServer:
		return "provider error"
	case KindNetwork:
		return "no answer"
	case KindUnreadable:
		return "answer is not readable"
	case KindMalformedCall:
		return "function call arguments are not a JSON object"
	default:
		return "call without an answer"
	}
}

// knownReason keeps the words that help an operator. Anything else is dropped, since a compatible server may put a
// piece of the prompt or the key there.
func knownReason(reason string) string {
	switch reason {
	case // google.rpc.Code
		"INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND",
		"ABORTED", "ALREADY_EXISTS", "RESOURCE_EXHAUSTED", "CANCELLED", "DATA_LOSS", "UNKNOWN", "INTERNAL",
		"NOT_IMPLEMENTED", "UNAVAILABLE", "DEADLINE_EXCEEDED",
		// OpenAI's codes and types
		"invalid_api_key", "model_not_found", "context_length_exceeded", "insufficient_quota", "rate_limit_exceeded",
		"invalid_request_error", "invalid_json_schema", "unsupported_parameter", "unsupported_value", "invalid_value",
		"missing_required_parameter", "content_policy_violation", "authentication_error", "permission_error",
		"server_error", "rate_limit_error", "requests", "tokens", "overloaded_error", "api_error", "not_found_error":
		return reason
	default:
		return ""
	}
}

// kindOfReason judges an error in the middle of a stream, where the HTTP status was 200.
func kindOfReason(reason string) Kind {
	switch reason {
	case "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "NOT_FOUND", "ALREADY_EXISTS", "NOT_IMPLEMENTED",
		"model_not_found", "context_length_exceeded", "invalid_request_error", "invalid_json_schema",
		"unsupported_parameter", "unsupported_value", "invalid_value", "missing_required_parameter",
		"content_policy_violation", "not_found_error":
		return KindInvalid
	case "UNAUTHENTICATED", "PERMISSION_DENIED", "invalid_api_key", "authentication_error", "permission_error":
		return KindAuth
	case "RESOURCE_EXHAUSTED", "insufficient_quota", "rate_limit_exceeded", "rate_limit_error", "requests", "tokens":
		return KindRateLimit
	default:
		return KindServer
	}
}
