/// The three databases of a container.
package enum DatabaseScope: String, Codable, Hashable, Sendable, CaseIterable {
  case `public`
  case `private`
  case shared
}

/// The environments of a container: one for development, one for users' data.
package enum ContainerEnvironment: String, Codable, Hashable, Sendable, CaseIterable {
  case development
  case production
}
