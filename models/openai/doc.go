// Package openai is the Chat Completions API as a [models.Model], over github.com/openai/openai-go, for OpenAI and for
// the many servers that speak the same protocol.
//
// It owns the translation between genai contents and chat messages. What the protocol has no place for is left out:
// thoughts, thought signatures, top-k, safety settings. It must not read the environment or retry: one call is one HTTP
// request. Wiring registers its [Factory] under the prefix "openai", or under further prefixes for other servers.
package openai
