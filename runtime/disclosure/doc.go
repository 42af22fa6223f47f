// Package disclosure decides what an agent's list of tools holds: which tools stand there with their schemas, which are
// deferred behind the bridge, and what the bridge's text tells of those.
//
// An [Assembly] is made from a generation of the catalog and an agent, and is immutable. Its bytes depend on what the
// operator configured and on which tools the providers have, never on whether a provider runs, so that an agent's prompt
// cache holds while providers restart.
package disclosure
