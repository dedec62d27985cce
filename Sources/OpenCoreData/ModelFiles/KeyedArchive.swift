import Foundation

/// Reads an archive of `NSKeyedArchiver` without the archived classes.
final class KeyedArchive {
  struct DamageError: Error {
    let found: String
    let expected: String
  }

  /// The limit of nesting: models nest property lists and predicates.
  static let depthLimit = 128

  private let list: BinaryPropertyList
  private let table: [Int]
  private var fields: [Int: [String: Int]] = [:]
  /// The limit of visited objects: a small archive with shared objects must not expand without
  /// bound.
  private var visitsLeft = 1_000_000

  private let rootIndex: Int
  /// Whether the archive says that it was written by `NSKeyedArchiver`, in the version that is known.
  let hasKnownVersion: Bool

  /// The root object of the archive.
  var root: ArchivedObject { ArchivedObject(archive: self, index: rootIndex) }

  init(_ data: Data) throws {
    let list = try BinaryPropertyList(data)
    let top = Self.entries(of: list.top, in: list)
    guard let objects = top["$objects"], case .array(let table) = list.nodes[objects],
      let roots = top["$top"]
    else {
      throw DamageError(
        found: "the property list has no $objects and $top",
        expected: "a keyed archive"
      )
    }
    let heads = Self.entries(of: roots, in: list)
    guard let head = heads["root"] ?? heads.values.min(),
      case .reference(let number) = list.nodes[head], number < UInt64(table.count)
    else {
      throw DamageError(found: "the archive has no root", expected: "a root object")
    }
    // Another reader might take another one of equal keys, and so another class.
    for index in [list.top, roots] + table where Self.hasEqualKeys(index, in: list) {
      throw DamageError(found: "an object has two equal keys", expected: "different keys")
    }
    let archiver = top["$archiver"].map { list.nodes[$0] }
    let version = top["$version"].map { list.nodes[$0] }
    hasKnownVersion = archiver == .string("NSKeyedArchiver") && version == .integer(100_000)
    self.list = list
    self.table = table
    rootIndex = table[Int(number)]
  }

  /// Counts a visited object; false if there were too many.
  func visit() -> Bool {
    visitsLeft -= 1
    return visitsLeft > 0
  }

  /// The names of all classes that the archive describes.
  var classNames: Set<String> {
    var names: Set<String> = []
    for index in table {
      guard let name = entries(index)["$classname"], case .string(let text) = list.nodes[name]
      else { continue }
      names.insert(text)
    }
    return names
  }

  /// The places of the archive's objects.
  var tableIndexes: [Int] { table }

  func node(_ index: Int) -> BinaryPropertyList.Node { list.nodes[index] }

  func entries(_ index: Int) -> [String: Int] {
    if let known = fields[index] { return known }
    let entries = Self.entries(of: index, in: list)
    fields[index] = entries
    return entries
  }

  /// Follows an archive reference; nil for `$null` and for invalid numbers.
  func resolve(_ index: Int) -> Int? {
    guard case .reference(let number) = list.nodes[index] else { return index }
    guard number > 0, number < UInt64(table.count) else { return nil }
    return table[Int(number)]
  }

  private static func hasEqualKeys(_ index: Int, in list: BinaryPropertyList) -> Bool {
    guard case .dictionary(let keys, _) = list.nodes[index] else { return false }
    var names: Set<String> = []
    for key in keys {
      if case .string(let name) = list.nodes[key], !names.insert(name).inserted { return true }
    }
    return false
  }

  private static func entries(of index: Int, in list: BinaryPropertyList) -> [String: Int] {
    guard case .dictionary(let keys, let values) = list.nodes[index] else { return [:] }
    var result: [String: Int] = [:]
    for (key, value) in zip(keys, values) {
      if case .string(let name) = list.nodes[key] { result[name] = value }
    }
    return result
  }
}
