import CloudKitWebServices
import Synchronization

/// Facts about the current request and its sender, for logs and metrics.
final class RequestSubject: Sendable {
  /// The subject of the request that the current task answers.
  @TaskLocal static var current: RequestSubject?

  struct Facts: Sendable {
    /// The record name of the user or key; nil if there is none, or none that is known.
    var user: String?
    var account: String?
    var device: String?
    var recordTypes: [String] = []
    var zones: [String] = []
    var items: Int?
    /// The refused records of a batch, by code.
    var refused: [ServerErrorCode: Int] = [:]
  }

  /// The names of each kind that are kept: a batch may have two hundred.
  private static let nameLimit = 8

  private let known = Mutex(Facts())

  var facts: Facts { known.withLock { $0 } }

  /// The record name of the user or key.
  var user: String? { known.withLock { $0.user } }

  func note(_ context: RequestContext) {
    known.withLock { facts in
      facts.user = context.principal?.userRecordName
      facts.account = context.principal?.account
      facts.device = context.clientID
    }
  }

  func note(_ body: some LoggedBody) {
    let types = Self.distinct(body.loggedTypes.lazy.compactMap(\.self))
    let zones = Self.distinct(body.loggedZones.lazy.compactMap { $0?.zoneName })
    let items = body.loggedItems
    known.withLock { facts in
      facts.recordTypes = types
      facts.zones = zones
      facts.items = items
    }
  }

  func note(refused codes: [ServerErrorCode]) {
    guard !codes.isEmpty else { return }
    known.withLock { facts in
      for code in codes { facts.refused[code, default: 0] += 1 }
    }
  }

  private static func distinct(_ names: some Sequence<String>) -> [String] {
    var found: [String] = []
    for name in names where !found.contains(name) {
      found.append(name)
      if found.count == nameLimit { break }
    }
    return found
  }
}
