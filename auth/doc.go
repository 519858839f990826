// Package auth is the vocabulary of permission: what a tool wants ([Want]), what is missing ([Need]), where a credential
// is kept ([Slot]), the question to a person ([Request]), the secret itself ([Secret], [AccessToken]) and the typed error that
// starts a wait ([RequiredError]).
//
//	pending ──begin──▶ (flow) ──callback──▶ exchanging ──token stored──▶ granted
//	   │                                        │  code refused
//	   │◀───────────────────────────────────────┘
//	   └──▶ denied │ expired │ cancelled
//
// It owns no machinery: flows, discovery, vault and refresh are the packages below it, reached through [Broker]. It must
// not know Temporal. Tools import it to get tokens, activities to ask people, the server to show who is asked for what.
package auth
