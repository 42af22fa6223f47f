// Package search finds the tool that an agent asks for in its own words.
//
// An Engine holds a corpus of documents, one for each tool. Update gives it the whole new catalog; Corpus returns an
// immutable snapshot; Corpus.Scope restricts it to what one agent may see; Scope.Search ranks. Nothing on the way of a
// search takes a lock.
//
// Ranking has two passes. bleve (scorch) holds one composite field of prepared words for each tool and yields the best
// 500 candidates within the scope; scopes of up to 500 tools are scored whole. The order is then computed here, from a
// forward index: BM25F over the fields of a tool with the statistics of the scope, and a second pass over the best 200
// that asks how much of the tool's name, verb and source the query names. bleve's own scores are never used, because
// they change with the batches in which documents were added. Equal scores are ordered by name, so one catalog and one
// query always give the same answer.
//
// A change is visible to the next search: documents that the base index does not hold form an overlay, whose members are
// always candidates, and removed ones are struck out, until a new base has been built in the background.
package search
