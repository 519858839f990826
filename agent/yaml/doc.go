// Package yaml reads agents that are written in ADK's YAML format (root_agent.yaml and the files that it names) into
// [agent.Definition].
//
// It owns the format: which keys there are, which of ADK's keys are not supported yet, and Tarry's own additions, which
// stand under the key tarry. It must not start anything, resolve a secret or read the environment: files below one
// folder go in, definitions or errors come out. Commands and the worker's wiring call it at their start.
//
// # What differs from ADK
//
//   - Secrets are references, ${env:TARRY_SECRET_NAME} or ${file:NAME}, and only in client_secret, headers and env.
//     A literal is refused and never repeated in an error.
//   - ${var:NAME} in url and model is replaced from [Options.Vars]. ADK's ${NAME} is not.
//   - The agent's block tarry holds deadline ("72h"; credential_deadline is its older name), on_deadline and remind; that of the
//     root agent on_message and limits, too. A toolset's block tarry (in args) holds max_scopes, credential_domain, resource and
//     issuer.
//   - auth_credential.oauth2.redirect_uri is read and ignored: the callback of a login is always Tarry's own.
//   - tools names Go functions that the program registered, instead of Python ones.
//   - model may stand on a LoopAgent or SequentialAgent, for the agents below it.
//   - Aliases (*name), merge keys (<<) and tags are refused.
package yaml
