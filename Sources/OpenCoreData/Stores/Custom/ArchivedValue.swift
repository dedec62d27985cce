import Foundation

/// A transformable value in a cache node, with the bytes that were read from the store.
///
/// The bytes are written again as they are: a process whose transformer is missing, or does not allow
/// the value's class, saves the value that it cannot read.
final class ArchivedValue: NSObject {
  let bytes: Data
  private let decode: (Data) -> Any?
  private var decoded: Any?

  init(_ bytes: Data, decode: @escaping (Data) -> Any?) {
    self.bytes = bytes
    self.decode = decode
    super.init()
  }

  /// The value; nil while this process cannot read it.
  var value: Any? {
    if decoded == nil { decoded = decode(bytes) }
    return decoded
  }
}

extension NSAtomicStoreCacheNode {
  /// Keeps the bytes of a transformable value, which is decoded when it is first asked for.
  func keep(_ bytes: Data, of slot: AttributeSlot) {
    keep(ArchivedValue(bytes) { TransformableCoding.decode($0, of: slot) }, of: slot)
  }

  func keep(_ value: ArchivedValue, of slot: AttributeSlot) {
    let cache = propertyCache ?? NSMutableDictionary()
    cache.setObject(value, forKey: NSString(string: slot.name))
    if propertyCache == nil { propertyCache = cache }
  }

  /// The bytes of a transformable value that was read from the store.
  func archivedValue(forKey key: String) -> ArchivedValue? {
    propertyCache?.object(forKey: NSString(string: key)) as? ArchivedValue
  }

  /// The value as a row is made of it.
  func storedValue(forKey key: String) -> Any? { archivedValue(forKey: key) ?? value(forKey: key) }
}
