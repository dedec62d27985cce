import Foundation

/// The destination objects of each source object, by mapping.
///
/// Several mappings may have one name; a question by name is answered with the objects of all of them.
struct MigrationAssociations {
  typealias Pair = (source: NSManagedObject, destination: NSManagedObject)

  private final class Table {
    let name: String
    private(set) var pairs: [Pair] = []
    private var destinations: [ObjectIdentifier: [NSManagedObject]] = [:]
    private var sources: [ObjectIdentifier: [NSManagedObject]] = [:]

    init(name: String) {
      self.name = name
    }

    func add(_ source: NSManagedObject, _ destination: NSManagedObject) {
      pairs.append((source, destination))
      destinations[ObjectIdentifier(source), default: []].append(destination)
      sources[ObjectIdentifier(destination), default: []].append(source)
    }

    /// The destination objects of some source objects; nil for those of all.
    func destinations(of sources: [NSManagedObject]?) -> [NSManagedObject] {
      guard let sources else { return pairs.map(\.destination) }
      return sources.flatMap { destinations[ObjectIdentifier($0)] ?? [] }
    }

    /// The source objects of some destination objects; nil for those of all.
    func sources(of destinations: [NSManagedObject]?) -> [NSManagedObject] {
      guard let destinations else { return pairs.map(\.source) }
      return destinations.flatMap { sources[ObjectIdentifier($0)] ?? [] }
    }
  }

  /// The tables in the order of their names.
  private var tables: [Table] = []
  private var byMapping: [ObjectIdentifier: Table] = [:]
  private var byName: [String: [Table]] = [:]

  mutating func associate(
    _ source: NSManagedObject,
    _ destination: NSManagedObject,
    _ mapping: NSEntityMapping
  ) {
    let table = byMapping[ObjectIdentifier(mapping)] ?? makeTable(for: mapping)
    table.add(source, destination)
  }

  private mutating func makeTable(for mapping: NSEntityMapping) -> Table {
    let table = Table(name: mapping.name ?? "")
    tables.insert(table, at: tables.firstIndex { $0.name > table.name } ?? tables.endIndex)
    byMapping[ObjectIdentifier(mapping)] = table
    byName[table.name, default: []].append(table)
    return table
  }

  // MARK: One mapping

  /// The destination objects of some source objects by a mapping; nil for those of all.
  func destinations(
    of sources: [NSManagedObject]?,
    by mapping: NSEntityMapping
  ) -> [NSManagedObject] {
    byMapping[ObjectIdentifier(mapping)]?.destinations(of: sources) ?? []
  }

  /// The source objects of some destination objects by a mapping; nil for those of all.
  func sources(
    of destinations: [NSManagedObject]?,
    by mapping: NSEntityMapping
  ) -> [NSManagedObject] {
    byMapping[ObjectIdentifier(mapping)]?.sources(of: destinations) ?? []
  }

  // MARK: By name

  func destinations(of sources: [NSManagedObject]?, named name: String) -> [NSManagedObject] {
    (byName[name] ?? []).flatMap { $0.destinations(of: sources) }
  }

  func sources(of destinations: [NSManagedObject]?, named name: String) -> [NSManagedObject] {
    (byName[name] ?? []).flatMap { $0.sources(of: destinations) }
  }

  // MARK: All mappings

  /// The destination objects of some source objects by any mapping.
  func destinations(of sources: [NSManagedObject]) -> [NSManagedObject] {
    sources.flatMap { source in tables.flatMap { $0.destinations(of: [source]) } }
  }

  /// Each source object with its first destination object.
  var pairs: [Pair] { tables.flatMap(\.pairs) }
}
