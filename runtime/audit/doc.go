// Package audit keeps a record of every call: one when it starts, durable before anything runs, and one when it has ended.
//
// The records form a chain: each carries a hash of itself and of the hash before it, so that [Log.Verify] finds any that
// was changed, removed or moved. Concurrent calls share one write. A record is durable in a journal first, and a moment later in
// the table, where it is read; docs/design/journal.md says why.
package audit
