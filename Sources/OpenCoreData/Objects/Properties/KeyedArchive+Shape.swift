import Foundation

extension KeyedArchive {
  /// Whether the archive has the shape that Foundation's unarchiver relies on, so that it can be handed
  /// an archive with objects of the app's own classes.
  ///
  /// The unarchiver on Linux ends the program where a reference leads nowhere, where a collection has
  /// other members than it says, and where objects contain themselves or are nested without bound.
  func isWellFormed(byteCount: Int) -> Bool {
    guard hasKnownVersion, isNullFirst, tableIndexes.allSatisfy(isEntry) else { return false }
    var reader = ArchivedValueReader(byteCount: byteCount)
    for index in tableIndexes {
      let object = ArchivedObject(archive: self, index: index)
      guard let name = object.className, ArchivedValueReader.classes[name] != nil else { continue }
      let isRead =
        Self.collections.contains(name) ? hasMembers(object) : reader.object(object) != nil
      guard isRead else { return false }
    }
    var graph = ArchiveGraph(archive: self, sizeLimit: byteCount + 250_000)
    return graph.size(of: root.index) != nil
  }

  private static let collections: Set<String> = [
    "NSArray", "NSMutableArray", "NSSet", "NSMutableSet", "NSOrderedSet", "NSMutableOrderedSet",
    "NSDictionary", "NSMutableDictionary",
  ]

  private var isNullFirst: Bool {
    tableIndexes.first.map { node($0) == .string("$null") } ?? false
  }

  /// Whether an entry of the table is a plain value, a class, or an object with a class, and leads only
  /// to other entries.
  private func isEntry(_ index: Int) -> Bool {
    switch node(index) {
    case .array, .reference, .null: return false
    case .dictionary: break
    default: return true
    }
    let fields = entries(index)
    if fields["$classname"] != nil { return isClass(index) }
    guard let type = fields["$class"], case .reference = node(type), let target = resolve(type),
      isClass(target)
    else { return false }
    return fields.allSatisfy { $0.key == "$class" || isField($0.value) }
  }

  private func isClass(_ index: Int) -> Bool {
    let fields = entries(index)
    guard let name = fields["$classname"], case .string(let text) = node(name), !text.isEmpty,
      let parents = fields["$classes"], case .array(let names) = node(parents)
    else { return false }
    return names.allSatisfy { name in
      if case .string = node(name) { return true }
      return false
    }
  }

  private func isField(_ index: Int) -> Bool {
    switch node(index) {
    case .dictionary: false
    case .reference(let number): number < UInt64(tableIndexes.count)
    case .array(let members):
      members.allSatisfy { member in
        guard case .reference(let number) = node(member) else { return false }
        return number < UInt64(tableIndexes.count)
      }
    default: true
    }
  }

  /// Whether a collection has its members, and a dictionary a key for each.
  private func hasMembers(_ object: ArchivedObject) -> Bool {
    let members = object.list("NS.objects", each: "NS.object.")
    guard !members.contains(where: \.isMissing) else { return false }
    guard object.className?.hasSuffix("Dictionary") ?? false else { return true }
    let keys = object.list("NS.keys", each: "NS.key.")
    return keys.count == members.count && !keys.contains(where: \.isMissing)
  }
}

extension ArchivedObject {
  /// Whether a member of a collection is the archive's `$null`, which a collection cannot hold.
  fileprivate var isMissing: Bool {
    switch node {
    case .null, .reference: true
    case .string(let text): text == "$null"
    default: false
    }
  }
}

/// The objects that an archive's objects refer to.
private struct ArchiveGraph {
  let archive: KeyedArchive
  /// The most objects that an object may have, with those of its members: shared ones count each time.
  let sizeLimit: Int
  private var sizes: [Int: Int] = [:]
  private var heights: [Int: Int] = [:]
  private var open: Set<Int> = []

  init(archive: KeyedArchive, sizeLimit: Int) {
    self.archive = archive
    self.sizeLimit = sizeLimit
  }

  /// The number of objects below one; nil where it contains itself, or too many, or is nested too
  /// deeply.
  mutating func size(of index: Int) -> Int? {
    if let known = sizes[index] {
      return open.count + (heights[index] ?? 0) < KeyedArchive.depthLimit ? known : nil
    }
    guard open.count < KeyedArchive.depthLimit, open.insert(index).inserted else { return nil }
    defer { open.remove(index) }
    var (size, height) = (1, 0)
    for field in archive.entries(index) where field.key != "$class" {
      for target in targets(of: field.value) {
        guard let inner = self.size(of: target) else { return nil }
        size += inner
        height = max(height, (heights[target] ?? 0) + 1)
        guard size <= sizeLimit else { return nil }
      }
    }
    sizes[index] = size
    heights[index] = height
    return size
  }

  private func targets(of field: Int) -> [Int] {
    switch archive.node(field) {
    case .reference: archive.resolve(field).map { [$0] } ?? []
    case .array(let members): members.compactMap(archive.resolve)
    default: []
    }
  }
}
