import Foundation
import Synchronization

/// Keyed archives as transformable attributes keep them.
///
/// Foundation's unarchiver on Linux ends the program at a class that it does not expect, and damaged
/// bytes can crash it. An archive of Foundation's own values is therefore read by
/// ``ArchivedValueReader``. One with objects of other classes is checked by ``KeyedArchive`` before
/// Foundation reads it. An object of another class than a class's own `init(coder:)` asks for still ends
/// the program there.
enum TransformableArchive {
  // MARK: Writing

  /// The archive of a value; nil for one that has none or that could not be read from it again.
  ///
  /// No other classes than those given are archived; nil stands for any class.
  static func archive(_ value: Any, classes: [AnyClass]?) -> Data? {
    var writer = ArchivableValues(classes: classes)
    guard let object = writer.object(value) else { return nil }
    // Whether classes are secure was asked above; Foundation ends the program for others.
    let data = try? NSKeyedArchiver.archivedData(
      withRootObject: object,
      requiringSecureCoding: false
    )
    guard let data else { return nil }
    return writer.isOfValues || unarchive(data, classes: classes) != nil ? data : nil
  }

  // MARK: Reading

  /// The object of an archive; nil if the bytes are damaged or have a class other than those given,
  /// where nil stands for any class.
  ///
  /// The caller leaves bytes that it cannot read in the row as they are.
  static func unarchive(_ data: Data, classes: [AnyClass]?) -> Any? {
    guard let archive = try? KeyedArchive(data) else { return nil }
    let names = archive.classNames.sorted()
    var found: [(name: String, type: AnyClass)] = []
    for name in names {
      guard let type: AnyClass = ArchivedValueReader.classes[name] ?? archivedClass(name),
        classes?.contains(where: { isSubclass(type, of: $0) }) ?? true
      else {
        warn(of: name)
        return nil
      }
      found.append((name, type))
    }
    if names.allSatisfy({ ArchivedValueReader.classes[$0] != nil }) {
      var reader = ArchivedValueReader(byteCount: data.count)
      return reader.object(archive.root).map(native)
    }
    guard archive.isWellFormed(byteCount: data.count) else { return nil }
    return decode(data, found, isSecure: classes != nil)
  }

  /// The names of the classes of an archive; none where the bytes are no archive.
  static func classNames(in data: Data) -> [String] {
    (try? KeyedArchive(data))?.classNames.sorted() ?? []
  }

  /// Reads an archive whose classes are known and allowed.
  private static func decode(
    _ data: Data,
    _ found: [(name: String, type: AnyClass)],
    isSecure: Bool
  ) -> Any? {
    guard !isSecure || found.allSatisfy({ supportsSecureCoding($0.type) }),
      let decoder = try? NSKeyedUnarchiver(forReadingFrom: data)
    else { return nil }
    decoder.requiresSecureCoding = isSecure
    decoder.decodingFailurePolicy = .setErrorAndReturn
    defer { decoder.finishDecoding() }
    for entry in found where ArchivedValueReader.classes[entry.name] == nil {
      decoder.setClass(entry.type, forClassName: entry.name)
    }
    let key = NSKeyedArchiveRootObjectKey
    let object =
      isSecure
      ? decoder.decodeObject(of: found.map(\.type), forKey: key) : decoder.decodeObject(forKey: key)
    guard let object, decoder.error == nil else { return nil }
    return native(object)
  }

  /// The class of archived objects; nil if this process has none with a coding.
  private static func archivedClass(_ name: String) -> AnyClass? {
    var candidates = [name]
    // An archive of Apple's platforms may name the class alone; on Linux it has its module's name.
    if !name.contains("."), let executable = Bundle.main.executableURL {
      candidates.append(executable.deletingPathExtension().lastPathComponent + "." + name)
    }
    return candidates.lazy.compactMap(NSClassFromString).first { $0 is any NSCoding.Type }
  }

  private static func isSubclass(_ type: AnyClass, of parent: AnyClass) -> Bool {
    var next: AnyClass? = type
    while let current = next {
      if current == parent { return true }
      next = _getSuperclass(current)
    }
    return false
  }

  static func supportsSecureCoding(_ type: AnyClass) -> Bool {
    (type as? any NSSecureCoding.Type)?.supportsSecureCoding ?? false
  }

  /// Strings, dates and bytes come out as Swift's own.
  private static func native(_ object: Any) -> Any {
    switch object {
    case let object as NSString: object as String
    case let object as NSDate:
      Date(timeIntervalSinceReferenceDate: object.timeIntervalSinceReferenceDate)
    case let object as NSData: object as Data
    case let object as NSUUID: object as UUID
    case let object as NSURL: object as URL
    default: object
    }
  }

  /// Logs once for each class that transformable values have and that cannot be read, up to a number of
  /// classes: the bytes may come from another person's device.
  private static func warn(of name: String) {
    let shown = name.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }
    let name = String(shown.prefix(nameLimit).map(Character.init))
    let isNew = warned.withLock { $0.count < warningLimit && $0.insert(name).inserted }
    guard isNew else { return }
    StoreLog.warning(
      "A transformable value has the class '\(name)', which this program lacks or the attribute's "
        + "transformer does not allow. It reads as nil, and its bytes stay in the store."
    )
  }

  private static let warned = Mutex<Set<String>>([])
  private static let warningLimit = 100
  private static let nameLimit = 200
}
