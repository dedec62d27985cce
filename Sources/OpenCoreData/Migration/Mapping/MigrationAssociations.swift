import Foundation

/// The destination objects of each source object, by mapping.
struct MigrationAssociations {
  private struct Table {
    var destinations: [ObjectIdentifier: [NSManagedObject]] = [:]
    var sources: [ObjectIdentifier: [NSManagedObject]] = [:]
    var pairs: [(source: NSManagedObject, destination: NSManagedObject)] = []
  }

  private var tables: [String: Table] = [:]

  mutating func associate(
    _ source: NSManagedObject,
    _ destination: NSManagedObject,
    _ mapping: String
  ) {
    tables[mapping, default: Table()].destinations[ObjectIdentifier(source), default: []]
      .append(destination)
    tables[mapping, default: Table()].sources[ObjectIdentifier(destination), default: []]
      .append(source)
    tables[mapping, default: Table()].pairs.append((source, destination))
  }

  /// The destination objects of some source objects by a mapping; nil for those of all.
  func destinations(of sources: [NSManagedObject]?, _ mapping: String) -> [NSManagedObject] {
    guard let table = tables[mapping] else { return [] }
    guard let sources else { return table.pairs.map(\.destination) }
    return sources.flatMap { table.destinations[ObjectIdentifier($0)] ?? [] }
  }

  func sources(of destinations: [NSManagedObject]?, _ mapping: String) -> [NSManagedObject] {
    guard let table = tables[mapping] else { return [] }
    guard let destinations else { return table.pairs.map(\.source) }
    return destinations.flatMap { table.sources[ObjectIdentifier($0)] ?? [] }
  }

  /// The destination objects of some source objects by any mapping.
  func destinations(of sources: [NSManagedObject]) -> [NSManagedObject] {
    sources.flatMap { source in
      tables.sorted { $0.key < $1.key }
        .flatMap { $0.value.destinations[ObjectIdentifier(source)] ?? [] }
    }
  }

  /// Each source object with its first destination object.
  var pairs: [(source: NSManagedObject, destination: NSManagedObject)] {
    tables.sorted { $0.key < $1.key }.flatMap(\.value.pairs)
  }
}
