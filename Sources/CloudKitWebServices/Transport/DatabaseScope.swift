/// The three databases of a container.
package enum DatabaseScope: String, Codable, Hashable, Sendable, CaseIterable {
  case `public`
  case `private`
  case shared
}

/// The two sides of a container: one to try things in, one that people's data lives in.
package enum ContainerEnvironment: String, Codable, Hashable, Sendable, CaseIterable {
  case development
  case production
}
