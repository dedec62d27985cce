import Foundation

/// A list of objects with the bounds of its sections.
struct SectionedResults {
  struct Section: Equatable {
    var name: String
    var range: Range<Int>
  }

  private(set) var objects: [NSManagedObject] = []
  private(set) var sections: [Section] = []
  private var places: [ObjectIdentifier: Int]?

  /// An empty list: without a section key path it has one empty section.
  init(isSectioned: Bool) {
    if !isSectioned { sections = [Section(name: "", range: 0..<0)] }
  }

  /// A list whose section names are read from its objects, but for those whose names are known.
  ///
  /// Throws if the objects of a section are not adjacent.
  init(
    _ objects: [NSManagedObject],
    sectionNameKeyPath: String?,
    knownName: (NSManagedObject) -> String? = { _ in nil }
  ) throws {
    self.objects = objects
    guard let sectionNameKeyPath else {
      sections = [Section(name: "", range: 0..<objects.count)]
      return
    }
    var seen: Set<String> = []
    for (index, object) in objects.enumerated() {
      let name = knownName(object) ?? Self.sectionName(of: object, sectionNameKeyPath)
      if let last = sections.last, last.name == name {
        sections[sections.count - 1].range = last.range.lowerBound..<(index + 1)
        continue
      }
      guard seen.insert(name).inserted else {
        throw CoreDataError.make(
          NSCoreDataError,
          "The fetched object at index \(index) has an out of order section name '\(name). "
            + "Objects must be sorted by section name'"
        )
      }
      sections.append(Section(name: name, range: index..<(index + 1)))
    }
  }

  /// A list with the sections of an earlier fetch.
  init(_ objects: [NSManagedObject], sections: [Section]) {
    self.objects = objects
    self.sections = sections
  }

  /// Whether sections of an earlier fetch still fit the objects; only the first and the last object of each are
  /// compared.
  static func sections(
    _ sections: [Section],
    fit objects: [NSManagedObject],
    by keyPath: String
  ) -> Bool {
    sections.last?.range.upperBound ?? 0 == objects.count
      && sections.allSatisfy { section in
        [section.range.lowerBound, section.range.upperBound - 1].allSatisfy {
          sectionName(of: objects[$0], keyPath) == section.name
        }
      }
  }

  static func sectionName(of object: NSManagedObject, _ keyPath: String) -> String {
    switch object.value(forKeyPath: keyPath) {
    case nil, is NSNull: ""
    case let text as String: text
    case let number as NSNumber: number.stringValue
    case let value?: String(describing: value)
    }
  }

  // MARK: Places

  /// The index in the flat list.
  mutating func index(of object: NSManagedObject) -> Int? {
    if let places { return places[ObjectIdentifier(object)] }
    var made: [ObjectIdentifier: Int] = [:]
    made.reserveCapacity(objects.count)
    for (index, object) in objects.enumerated() { made[ObjectIdentifier(object)] = index }
    places = made
    return made[ObjectIdentifier(object)]
  }

  /// The name of the section of an object; nil if it is not in the list.
  mutating func sectionName(of object: NSManagedObject) -> String? {
    index(of: object).flatMap { section(of: $0) }.map { sections[$0].name }
  }

  /// The section that contains an index of the flat list.
  func section(of index: Int) -> Int? {
    var low = 0
    var high = sections.count
    while low < high {
      let middle = (low + high) / 2
      if sections[middle].range.upperBound <= index { low = middle + 1 } else { high = middle }
    }
    return low < sections.count && sections[low].range.contains(index) ? low : nil
  }

  func indexPath(of index: Int) -> IndexPath? {
    section(of: index).map {
      IndexPath(item: index - sections[$0].range.lowerBound, section: $0)
    }
  }

  mutating func indexPath(of object: NSManagedObject) -> IndexPath? {
    index(of: object).flatMap { indexPath(of: $0) }
  }
}
