// Package catalog knows all tools of all providers.
//
// A [Catalog] turns what the providers offer into one immutable [Snapshot] per generation, in which every name stands for
// exactly one tool. A [View] is what one agent may see of a snapshot. Readers take the snapshot from an atomic pointer
// and never a lock; a new generation begins only when some provider's tools changed, not when one restarts or goes down.
package catalog
