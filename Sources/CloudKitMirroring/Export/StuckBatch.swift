/// An open batch that the server does not take now.
struct StuckBatch: Hashable, Sendable {
  var sequence: Int64
  var failure: CloudFailure
}

/// The failure of a batch that one call has sent more than once: an earlier attempt may have been executed without
/// a reply.
package struct RepeatedRequestFailure: Error, Hashable, Sendable {
  package var failure: CloudFailure

  package init(_ failure: CloudFailure) { self.failure = failure }
}
