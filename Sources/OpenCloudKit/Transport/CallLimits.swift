/// How long calls may take, in seconds.
package struct CallLimits: Hashable, Sendable {
  /// CloudKit's own limit for one request.
  package static let requestTime = 60.0
  /// CloudKit's own limit for an operation: a week.
  package static let resourceTime = 7.0 * 24 * 60 * 60

  /// The longest wait for a reply.
  package var request: Double
  /// The longest that a call with all its repeats may take.
  package var resource: Double

  package init(request: Double = requestTime, resource: Double = resourceTime) {
    self.request = request
    self.resource = resource
  }

  /// Limits that nobody set: the transport's own hold.
  package static let standard = CallLimits()

  /// Of two limits the shorter ones; what nobody set does not count.
  package func tightened(to other: CallLimits) -> CallLimits {
    CallLimits(
      request: other.request == Self.requestTime ? request : other.request,
      resource: other.resource == Self.resourceTime ? resource : other.resource
    )
  }
}
