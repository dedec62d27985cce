import CloudKitWebServices

/// A request of an app as an administrator sees it: who asked for what and the outcome, without
/// values of records, tokens and addresses.
package struct LoggedRequest: Codable, Hashable, Sendable {
  /// The position in the log.
  package var number: Int64
  /// Milliseconds since 1970.
  package var time: Int64
  package var container: String
  package var environment: ContainerEnvironment
  /// Nil for an endpoint without a database.
  package var database: DatabaseScope?
  package var endpoint: String
  /// The record name of the user or key; nil for a visitor, or if the credential was refused.
  package var user: String?
  /// The account's name; nil if it has none any more, and for keys.
  package var userName: String?
  /// The client's name for its device, `clientId`.
  package var device: String?
  /// The client's name for its software, `User-Agent`.
  package var platform: String?
  package var recordTypes: [String]
  package var zones: [String]
  /// The number of items of the batch or of a look-up.
  package var items: Int?
  package var milliseconds: Double
  package var bytesIn: Int
  package var bytesOut: Int
  package var status: Int
  /// `OK`, or the code of the error.
  package var outcome: String
  /// The refused records of a batch that was answered, by code.
  package var refused: [String: Int]

  /// The outcome of requests without an error.
  package static let success = "OK"

  /// Whether it was refused, or records of its batch were.
  package var hasErrors: Bool { outcome != Self.success || !refused.isEmpty }

  /// About the bytes that it takes in memory.
  var size: Int {
    let texts =
      [container, endpoint, user, device, platform, outcome].compactMap(\.self) + recordTypes
      + zones + refused.keys
    return texts.reduce(256) { $0 + $1.utf8.count + 16 }
  }
}

/// The requested lines of the log of requests.
package struct RequestQuery: Codable, Hashable, Sendable {
  /// Nil: of all containers.
  package var container: String?
  package var environment: ContainerEnvironment?
  /// A user name, or the record name of a user or key.
  package var user: String?
  package var endpoint: String?
  package var onlyErrors: Bool?
  /// Milliseconds since 1970; earlier requests are left out.
  package var since: Int64?
  /// The number after which the log is continued; nil: the newest requests.
  package var after: Int64?
  /// The log to which that number belongs; another one is read from its beginning.
  package var log: String?
  package var limit: Int?

  package init(
    container: String? = nil,
    environment: ContainerEnvironment? = nil,
    user: String? = nil,
    endpoint: String? = nil,
    onlyErrors: Bool? = nil,
    since: Int64? = nil,
    limit: Int? = nil
  ) {
    self.container = container
    self.environment = environment
    self.user = user
    self.endpoint = endpoint
    self.onlyErrors = onlyErrors
    self.since = since
    self.limit = limit
  }

  /// The most requests of one page.
  package static let largestPage = 1000

  var size: Int { min(max(limit ?? 200, 1), Self.largestPage) }
}

/// A page of the log of requests, oldest first.
package struct RequestPage: Codable, Hashable, Sendable {
  /// Identifies the log: each start of a server begins another one.
  package var log: String
  package var requests: [LoggedRequest]
  /// The number to continue after.
  package var last: Int64
}
