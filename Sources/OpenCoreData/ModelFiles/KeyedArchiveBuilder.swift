import Foundation

/// A value of a binary property list.
package indirect enum ArchiveValue: Sendable {
  case boolean(Bool)
  case integer(Int64)
  case real(Double)
  case string(String)
  case data(Data)
  /// A reference to an object of the archive.
  case reference(Int)
  case array([ArchiveValue])
  case dictionary([(String, ArchiveValue)])
}

/// Builds a keyed archive in the form of `NSKeyedArchiver`.
package struct KeyedArchiveBuilder {
  private var objects: [ArchiveValue] = [.string("$null")]
  private var strings: [String: Int] = [:]
  private var classes: [String: Int] = [:]

  package init() {}

  /// The reference for nil.
  package static let null = ArchiveValue.reference(0)

  /// Reserves a reference for an object that others reference before it is built.
  package mutating func reserve() -> Int {
    objects.append(.string("$null"))
    return objects.count - 1
  }

  package mutating func fill(
    _ place: Int,
    class names: [String],
    _ fields: [(String, ArchiveValue)]
  ) {
    let type = classReference(names)
    objects[place] = .dictionary(fields + [("$class", .reference(type))])
  }

  package mutating func object(
    class names: [String],
    _ fields: [(String, ArchiveValue)]
  ) -> ArchiveValue {
    let place = reserve()
    fill(place, class: names, fields)
    return .reference(place)
  }

  package mutating func plain(_ value: ArchiveValue) -> ArchiveValue {
    objects.append(value)
    return .reference(objects.count - 1)
  }

  package mutating func string(_ text: String?) -> ArchiveValue {
    guard let text else { return Self.null }
    if let known = strings[text] { return .reference(known) }
    objects.append(.string(text))
    strings[text] = objects.count - 1
    return .reference(objects.count - 1)
  }

  package mutating func array(_ members: [ArchiveValue], isMutable: Bool = false) -> ArchiveValue {
    let names = isMutable ? ["NSMutableArray", "NSArray", "NSObject"] : ["NSArray", "NSObject"]
    return object(class: names, [("NS.objects", .array(members))])
  }

  mutating func set(_ members: [ArchiveValue]) -> ArchiveValue {
    object(class: ["NSSet", "NSObject"], [("NS.objects", .array(members))])
  }

  package mutating func dictionary(
    _ pairs: [(key: ArchiveValue, value: ArchiveValue)],
    isMutable: Bool = true
  ) -> ArchiveValue {
    let names =
      isMutable
      ? ["NSMutableDictionary", "NSDictionary", "NSObject"] : ["NSDictionary", "NSObject"]
    return object(
      class: names,
      [
        ("NS.keys", .array(pairs.map(\.key))),
        ("NS.objects", .array(pairs.map(\.value))),
      ]
    )
  }

  /// The whole archive as a binary property list.
  package func data(root: Int) -> Data {
    BinaryPropertyListWriter.data(
      .dictionary([
        ("$version", .integer(100_000)),
        ("$archiver", .string("NSKeyedArchiver")),
        ("$top", .dictionary([("root", .reference(root))])),
        ("$objects", .array(objects)),
      ])
    )
  }

  private mutating func classReference(_ names: [String]) -> Int {
    let name = names.first ?? "NSObject"
    if let known = classes[name] { return known }
    objects.append(
      .dictionary([
        ("$classname", .string(name)),
        ("$classes", .array(names.map { .string($0) })),
      ])
    )
    classes[name] = objects.count - 1
    return objects.count - 1
  }
}
