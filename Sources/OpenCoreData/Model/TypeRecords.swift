import CSwiftRuntime

/// The classes of the process by their own names, read from the records that the Swift runtime has of each image.
///
/// Objective-C finds a class by its bare name. Foundation wants the module too, and no list of modules exists; the
/// records are what the runtime itself looks a type up in. Their layout is in
/// include/swift/ABI/Metadata.h of the Swift repository.
enum TypeRecords {
  /// The classes with a name, without those that are generic; a class nested in another type, or private to a
  /// file, has its own name alone.
  static func classes(named name: String) -> [Any.Type] {
    let search = Search(name: name)
    withExtendedLifetime(search) {
      swift_enumerateAllMetadataSections(
        { sections, context in
          guard let context else { return false }
          let search = Unmanaged<Search>.fromOpaque(context).takeUnretainedValue()
          search.read(sections.pointee.types)
          return true
        },
        Unmanaged.passUnretained(search).toOpaque()
      )
    }
    return search.found
  }

  /// The one class with a name that is of a kind; nil where there is none, or more than one.
  ///
  /// A class of a module comes before one inside another type or private to a file. A warning names the classes
  /// of which none is taken.
  static func onlyClass<Kind: AnyObject>(named name: String, of kind: Kind.Type) -> Kind.Type? {
    var names: [ObjectIdentifier: (type: Kind.Type, name: String)] = [:]
    for case let type as Kind.Type in classes(named: name) {
      names[ObjectIdentifier(type)] = (type, String(reflecting: type))
    }
    let ofModules = names.values.filter { $0.name.count { $0 == "." } == 1 }
    let found = ofModules.isEmpty ? Array(names.values) : ofModules
    if found.count > 1 {
      StoreLog.warning(
        "The model names the class '\(name)' without its module, and there are "
          + "\(found.map(\.name).sorted().joined(separator: ", ")); none is taken. Name the one that is meant: "
          + "NSStringFromClass(\(name).self)."
      )
      return nil
    }
    return found.first?.type
  }

  /// The number of images, which rises when a library is loaded.
  static var imageCount: Int {
    var count = 0
    withUnsafeMutablePointer(to: &count) { count in
      swift_enumerateAllMetadataSections(
        { _, context in
          context?.assumingMemoryBound(to: Int.self).pointee += 1
          return true
        },
        count
      )
    }
    return count
  }

  private final class Search {
    let name: [UInt8]
    var found: [Any.Type] = []

    init(name: String) {
      self.name = Array(name.utf8) + [0]
    }

    func read(_ range: swift_record_range) {
      guard let start = range.start else { return }
      for offset in stride(from: 0, to: range.length, by: MemoryLayout<Int32>.size) {
        guard let descriptor = TypeDescriptor(record: start + offset), descriptor.hasName(name),
          let type = descriptor.type
        else { continue }
        found.append(type)
      }
    }
  }
}

/// The description of a class that is not generic, in an image's read-only data.
private struct TypeDescriptor {
  private static let classKind: UInt32 = 16
  private static let kindMask: UInt32 = 0x1f
  private static let genericFlag: UInt32 = 0x80

  private let address: UnsafeRawPointer

  init?(record: UnsafeRawPointer) {
    // The distance to the descriptor; its two lowest bits say whether that place holds a pointer instead.
    let distance = record.loadUnaligned(as: Int32.self)
    guard distance != 0 else { return nil }
    let place = record + Int(distance & ~3)
    switch distance & 3 {
    case 0: address = place
    case 1:
      guard let pointer = place.loadUnaligned(as: UnsafeRawPointer?.self) else { return nil }
      address = pointer
    default: return nil
    }
    let flags = address.loadUnaligned(as: UInt32.self)
    guard flags & Self.kindMask == Self.classKind, flags & Self.genericFlag == 0 else { return nil }
  }

  /// The place that is named by the distance at an offset of the descriptor: after flags and parent come the
  /// name and the function that returns the metadata.
  private func place(at offset: Int) -> UnsafeRawPointer? {
    let distance = address.loadUnaligned(fromByteOffset: offset, as: Int32.self)
    return distance == 0 ? nil : address + offset + Int(distance)
  }

  /// Compares with bytes that end with a zero.
  func hasName(_ bytes: [UInt8]) -> Bool {
    guard let text = place(at: 8) else { return false }
    for (index, byte) in bytes.enumerated()
    where text.load(fromByteOffset: index, as: UInt8.self) != byte {
      return false
    }
    return true
  }

  var type: (Any.Type)? {
    guard let accessor = place(at: 12), let metadata = watershed_metadata(accessor) else {
      return nil
    }
    return unsafeBitCast(metadata, to: Any.Type.self)
  }
}
