// Package deletions deletes rows while roles run apart.
//
// # Steps
//
// A deletion takes its place among the rows by an order in every partition, whose offset is its fence there.
// It hides the rows before it, and none after it. It takes effect when the catalogue has its record with all
// fences. In between, the request is decided in the bucket, once (package decision).
//
//  1. The order goes to every partition, and all in-sync replicas have it.
//  2. The bucket still has no later topic. The request is decided: to be carried out, with the fences.
//  3. The catalogue gets the record.
//  4. After Settle, the client gets its answer.
//
// An ingester that reads an order only keeps rows of both sides apart: no part and no block has both (package
// head). It asks for the decision before it ships anything from after the order, and before it covers the
// order. If there is none, it decides that the request is given up, and the client is told to repeat it. If
// the request is to be carried out, it writes the record in place of a process that has died.
//
// # What is hidden
//
// A row that was acknowledged before the deletion began has an offset before the fence, since offsets ascend
// with acknowledgements. One that was sent after the answer has an offset after it. Rows in the bucket are
// hidden by the catalogue: a block lies on one side of each fence, and its sources say on which one. Rows of
// ingesters are hidden by the query. It tells them the deletions of its catalogue with their fences, and they
// must have applied the orders. So what an ingester remembers does not matter: one that lost its disk, or
// that read the partition from after the order, hides the same. A query leaves out deletions that ships have
// passed: an ingester that has applied the order returns no row from before it then. It names the last one,
// so that lists of labels look at rows.
//
// A query looks for new records before it begins if it last looked more than Settle ago; the answer to the
// client is not sent before that time is over. So each query that begins after the answer knows the deletion.
// This takes clocks of equal speed, within a tenth, and no equal times. The monotonic clock stops while a
// machine sleeps. So a query looks, too, if Settle has passed by the wall clock, or that was set back.
//
// # What is kept
//
// Rows after the fence enter the bucket after the record of the deletion: their shipper has asked for the
// decision. A process that sees a ship sees the deletions from before it ([catalog.Catalog.Poll]). So a merge
// that has rows of both sides knows the deletion, and keeps them apart or drops what is deleted. A block gets
// its generation from fences and its own offsets, not from when the shipper heard of a deletion.
//
// The record of a deletion stays until ships cover its order in all partitions, also if it was cancelled. An
// order whose record is unknown is carried out as decided: a deletion would come back that was cancelled.
//
// A process that stops between the steps leaves an order without effect, or a decision that the next ship
// carries out; the client was not answered. One that sleeps before step 2 finds the request given up.
//
// One case is left to the operator: shale kafka adopt that gives up a lost topic, in the moment between steps
// 2 and 3. Rows of the new topic count as older then, until their block knows the record.
package deletions
