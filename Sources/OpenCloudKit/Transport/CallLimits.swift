/// How long calls may take, in seconds.
package struct CallLimits: Hashable, Sendable {
  /// CloudKit's own limit for one request.
  package static let requestTime = 60.0
  /// CloudKit's own limit for an operation: a week.
  package static let resourceTime = 7.0 * 24 * 60 * 60

  /// The longest wait for a reply.
  package var request: Double
  /// The longest duration of a call with all its retries.
  package var resource: Double

  package init(request: Double = requestTime, resource: Double = resourceTime) {
    self.request = request
    self.resource = resource
  }

  /// The default limits: only the transport's own limits apply.
  package static let standard = CallLimits()

  /// The shorter of each of two limits; a default value does not count.
  package func tightened(to other: CallLimits) -> CallLimits {
    CallLimits(
      request: other.request == Self.requestTime ? request : other.request,
      resource: other.resource == Self.resourceTime ? resource : other.resource
    )
  }
}
