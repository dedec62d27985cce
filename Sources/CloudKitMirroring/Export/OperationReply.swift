/// An operation of a batch, and what the server replied to it.
struct OperationReply {
  let operation: CloudOperation
  let outcome: CloudOutcome
  /// The number of the batch.
  let sequence: Int64
  /// The generation of the batch's zone.
  let generation: Int64
  /// The server's copy of a record in conflict, from the reply or from a look-up; nil if neither has it.
  let serverCopy: CloudRecord?
  /// Whether the batch was sent before.
  let isRepeat: Bool
}
