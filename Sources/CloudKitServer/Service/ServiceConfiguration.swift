import Effects
import Foundation

/// What a server is made of.
package struct ServiceConfiguration: Sendable {
  /// Where everything is kept; nil keeps it in memory.
  package var dataFolder: URL?
  /// A PostgreSQL as `postgresql://…` instead of a file in the data folder; several servers can
  /// share it.
  package var database: String?
  /// Where clients reach the server, such as `http://127.0.0.1:8080`; it can be set later.
  package var baseURL: String
  package var limits: ServiceLimits
  package var effects: Effects
  /// Takes queries in development that the documented index rules refuse: without a filter, and
  /// without indexes.
  package var allowsUnindexedQueriesInDevelopment: Bool
  /// Told why a query was refused for want of an index, and what to do about it.
  package var onRemedy: (@Sendable (_ reason: String, _ remedy: String) -> Void)?
  /// Told of every commit to records and zones.
  package var onCommit: (@Sendable (CommitEvent) -> Void)?

  package init(
    dataFolder: URL? = nil,
    database: String? = nil,
    baseURL: String = "http://127.0.0.1",
    limits: ServiceLimits = ServiceLimits(),
    effects: Effects = .live,
    allowsUnindexedQueriesInDevelopment: Bool = false,
    onCommit: (@Sendable (CommitEvent) -> Void)? = nil
  ) {
    self.dataFolder = dataFolder
    self.database = database
    self.baseURL = baseURL
    self.limits = limits
    self.effects = effects
    self.allowsUnindexedQueriesInDevelopment = allowsUnindexedQueriesInDevelopment
    self.onCommit = onCommit
  }
}
